"""Connections to MCP servers, through the official SDK (the extra `mcp`)."""
