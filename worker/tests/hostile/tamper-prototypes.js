// expect: value {"ok":1}
Object.prototype.then = undefined; Array.prototype.push = () => { throw 1 }; Promise.prototype.then = null; Function.prototype.call = null; JSON.stringify = null; Map.prototype.set = null; return { ok: 1 }
