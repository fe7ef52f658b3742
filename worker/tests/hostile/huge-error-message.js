// expect: thrown Error
// limits: memory=64MiB
throw new Error('x'.repeat(1e6))
