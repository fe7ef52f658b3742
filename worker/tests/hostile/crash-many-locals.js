// expect: value 0|limit memory|cpu_time|thrown
// limits: memory=64MiB cpu_time=2s
return eval('(function () {' + Array.from({ length: 70000 }, (_, i) => `let a${i} = ${i};`).join('') + 'return 0 })()')
