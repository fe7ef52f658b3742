// expect: limit cpu_time
for (const x of { [Symbol.iterator]: () => ({ next: () => ({ done: false }) }) }) { }
