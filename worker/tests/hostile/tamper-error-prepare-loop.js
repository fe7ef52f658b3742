// expect: limit cpu_time
Error.prepareStackTrace = () => { for (;;); }; throw new Error('x')
