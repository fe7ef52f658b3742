// expect: limit memory|cpu_time|thrown
return new Array(2 ** 28).join('abc').length
