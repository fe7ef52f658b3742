// expect: limit memory|stack|thrown
return JSON.parse('['.repeat(5e6))
