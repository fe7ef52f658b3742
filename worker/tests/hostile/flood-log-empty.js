// expect: limit logs|cpu_time
for (;;) console.log('')
