// expect: limit memory|cpu_time|thrown
const a = []; for (;;) a.push(new URL('http://h/' + 'x'.repeat(1e5)))
