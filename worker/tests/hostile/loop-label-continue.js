// expect: limit cpu_time
outer: for (;;) { for (;;) continue outer; }
