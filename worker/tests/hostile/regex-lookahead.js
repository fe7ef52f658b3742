// expect: limit cpu_time
return /(?=(a+)+b)c/.test('a'.repeat(40))
