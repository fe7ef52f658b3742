// expect: value 0|limit memory|cpu_time|thrown
return new Function(...Array.from({ length: 70000 }, (_, i) => 'a' + i), 'return 0')()
