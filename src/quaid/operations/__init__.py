"""Operations: one typed function for each command or tool, called by the command line, MCP and dashboard."""
