// expect: limit memory|cpu_time|thrown
return Array.from({ length: 2 ** 53 })
