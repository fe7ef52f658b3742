// expect: thrown TypeError
mcp.test = { echo: () => 1 }
