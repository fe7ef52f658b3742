// expect: limit cpu_time
return /^(.*)(.*)(.*)(.*)(.*)(.*)\1\2\3\4\5\6x$/.test('a'.repeat(300))
