// expect: limit cpu_time
return 'a'.replace(/a/, () => { for (;;); })
