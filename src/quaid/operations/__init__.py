"""Operations: one typed function per thing Quaid can do, called by the command line, MCP and the dashboard."""
