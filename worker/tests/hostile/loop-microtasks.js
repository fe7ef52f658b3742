// expect: limit cpu_time
const again = () => Promise.resolve().then(again); await again()
