// expect: limit memory|thrown
return String(1n << 2n ** 40n)
