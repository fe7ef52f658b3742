// expect: value "gone"
Object.prototype.toJSON = () => 'gone'; return { secret: 1 }
