// expect: limit cpu_time|stack
const p = new Proxy({}, { getPrototypeOf() { return p } }); return p instanceof Object
