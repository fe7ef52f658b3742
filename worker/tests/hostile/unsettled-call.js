// expect: limit wall_time
// limits: wall_time=200ms
await mcp.test.never()
