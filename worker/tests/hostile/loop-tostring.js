// expect: limit cpu_time
return `${{ toString() { for (;;); } }}`
