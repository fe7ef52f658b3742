// expect: limit cpu_time
return /^(a|a)*$/.test('a'.repeat(40) + '!')
