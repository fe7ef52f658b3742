// expect: limit cpu_time|memory|thrown
return /((a{1,1000}){1,1000}){1,1000}$/.test('a'.repeat(5000) + 'b')
