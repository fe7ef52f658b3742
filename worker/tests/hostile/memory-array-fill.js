// expect: limit memory|cpu_time|thrown
return new Array(2 ** 32 - 1).fill(0).length
