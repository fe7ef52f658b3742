// expect: thrown TypeError
Object.freeze(mcp)
