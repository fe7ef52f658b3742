// expect: limit memory|thrown
return 'x'.repeat(2 ** 29).length
