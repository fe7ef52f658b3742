// expect: limit cpu_time
return JSON.parse('[1]', () => { for (;;); })
