// expect: limit stack
const p = new Proxy({}, { get(t, k, r) { return r[k] } }); return p.x
