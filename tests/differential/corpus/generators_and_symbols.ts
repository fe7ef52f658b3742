function* count(n: number): Generator<number> { for (let i = 0; i < n; i++) yield i; }
const iter: Iterable<string> = { *[Symbol.iterator]() { yield "a"; yield "b"; } };
return [[...count(3)], [...iter]];
