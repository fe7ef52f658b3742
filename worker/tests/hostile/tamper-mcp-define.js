// expect: thrown TypeError
Object.defineProperty(mcp.test, 'echo', { value: 1 })
