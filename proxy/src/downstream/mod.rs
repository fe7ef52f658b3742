//! Real MCP servers behind the proxy.
