// expect: limit logs
for (;;) console.log('x'.repeat(100))
