// expect: limit stack|memory|cpu_time|thrown
return new RegExp('('.repeat(50000) + ')'.repeat(50000)).test('x')
