// expect: thrown Error
await { then() { } }
