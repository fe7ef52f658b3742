// expect: thrown RangeError
await mcp['x'.repeat(1e5)]({})
