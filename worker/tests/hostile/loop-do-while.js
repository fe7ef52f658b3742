// expect: limit cpu_time
let i = 0; do { i++ } while (i > 0);
