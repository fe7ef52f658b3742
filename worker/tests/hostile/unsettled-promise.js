// expect: thrown Error
await new Promise(() => { })
