// expect: limit cpu_time
return new Proxy({}, { ownKeys() { for (;;); } })
