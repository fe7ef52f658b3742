// expect: limit wall_time
// limits: wall_time=300ms cpu_time=10s
const again = () => setTimeout(again, 0); again(); await mcp.test.never()
