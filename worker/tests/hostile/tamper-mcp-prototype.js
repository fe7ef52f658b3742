// expect: thrown TypeError
Object.setPrototypeOf(mcp, { x: 1 })
