class Counter {
  static #made = 0;
  static readonly instances: Counter[] = [];
  static { this.#made = 10; Counter.instances.length = 0 }
  #value: number;
  private readonly step?: number;
  public constructor(value: number, step: number = 1) { this.#value = value; this.step = step; Counter.#made++; Counter.instances.push(this) }
  get value(): number { return this.#value }
  set value(v: number) { this.#value = v }
  #bump(by: number): this { this.#value += by; return this }
  bump() { return this.#bump(this.step!) }
  static get made() { return Counter.#made }
  static async load(n: number) { const { value } = await mcp.counter.load({ n }); return new this(value as number) }
  has(other: object): other is Counter { return #value in other }
  "quoted name"() { return 1 }
  ["computed" + 1] = 2;
  get = 3; set = 4; async = 5; static static = 6; declare?: string;
  readonly = 7;
}
const c = await Counter.load(4);
c.value = 9;
return [c.bump().value, Counter.made, c.has({}), c.has(c), c["quoted name"](), (c as any).computed1, c.get, c.set, c.async, Counter.static, c.readonly, Object.keys(c)];
