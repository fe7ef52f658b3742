// expect: limit memory|thrown
let s = 'x'; for (;;) s += s
