// expect: limit memory|thrown
return 'x'.padStart(2 ** 30 - 2, 'ab').length
