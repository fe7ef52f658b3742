// expect: limit cpu_time
return new Function('for (;;);')()
