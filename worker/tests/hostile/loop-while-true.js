// expect: limit cpu_time
while (true) { }
