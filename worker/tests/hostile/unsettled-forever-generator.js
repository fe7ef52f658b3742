// expect: thrown Error
const g = (async function* () { await new Promise(() => { }); })(); await g.next()
