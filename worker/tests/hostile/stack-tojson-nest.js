// expect: thrown TypeError
let o = { end: 1 }; for (let i = 0; i < 1e5; i++) o = { o }; return o
