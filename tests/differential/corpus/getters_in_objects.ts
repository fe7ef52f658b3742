const o = {
  _v: 1,
  get v(): number { return this._v; },
  set v(n: number) { this._v = n; },
  async load<T>(this: any, x: T): Promise<T> { await mcp.g.load({ x }); return x; },
  ["comp" + "uted"]: true,
};
o.v = 5;
return [o.v, await o.load("q"), o.computed];
