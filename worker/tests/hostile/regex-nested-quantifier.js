// expect: limit cpu_time
return /^(a+)+$/.test('a'.repeat(40) + '!')
