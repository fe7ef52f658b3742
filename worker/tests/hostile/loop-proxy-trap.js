// expect: limit cpu_time
return new Proxy({}, { get() { for (;;); } }).x
