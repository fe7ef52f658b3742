// expect: limit cpu_time
const again = () => queueMicrotask(again); again(); await mcp.test.never()
