"""The MCP server: the same questions and answers as the command line, for agents' hosts."""
