// expect: thrown Error
// limits: memory=64MiB
const e = new Error('x'); e.stack = 'at x (code:1:1)\n'.repeat(1e5); throw e
