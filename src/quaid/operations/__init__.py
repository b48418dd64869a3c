"""Everything Quaid can do, one typed function each; the command line, MCP and the dashboard call these."""
