// expect: limit cpu_time
return eval('for (;;);')
