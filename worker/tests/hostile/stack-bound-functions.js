// expect: limit stack|memory
let f = () => 1; for (let i = 0; i < 1e5; i++) f = f.bind(null); return f()
