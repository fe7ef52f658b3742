// expect: limit cpu_time
return [3, 2, 1].sort(() => { for (;;); })
