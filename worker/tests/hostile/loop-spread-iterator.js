// expect: limit cpu_time|memory
return [...{ [Symbol.iterator]: () => ({ next: () => ({ done: false, value: 1 }) }) }]
