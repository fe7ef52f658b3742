// expect: limit cpu_time|memory
const again = () => Promise.resolve().then(again); await again()
