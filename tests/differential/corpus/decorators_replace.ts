// What a decorator returns takes the place of what it decorates.
type Any = any;
const twice = (method: Any, context: Any) => function (this: Any, ...given: Any[]) { return method.apply(this, given) * 2 };
const plusOne = (_: undefined, context: Any) => (initial: number) => initial + 1;
const timesTen = (_: undefined, context: Any) => (initial: number) => (initial ?? 0) * 10;
const loud = (get: Any) => function (this: Any) { return `${get.call(this)}!` };
const clamp = (set: Any) => function (this: Any, value: number) { set.call(this, Math.min(value, 10)) };
const bound = (method: Any, { name, addInitializer }: Any) => addInitializer(function (this: Any) { this[name] = this[name].bind(this) });
const registered: Any = {};
const register = (value: Any, context: Any) => { registered[context.name] = value; context.addInitializer(function (this: Any) { registered.initialized = this === value }) };
const subclass = (value: Any, { name }: Any) => class extends value { extra = name; static tag = "sub" };
const watched = ({ get, set }: Any, { name }: Any) => ({
  get(this: Any) { return `${name}=${get.call(this)}` },
  set(this: Any, value: Any) { set.call(this, value + 1) },
  init(this: Any, value: Any) { return value * 100 },
});

@register class Plain { @twice double(n: number) { return n } }

@subclass
class Replaced {
  static self = () => Replaced;
  @plusOne @timesTen n = 4;
  @timesTen @plusOne m = 4;
  @plusOne #secret = 1;
  @twice #hidden(n: number) { return n + this.#secret }
  @loud get #name() { return "private" }
  @clamp set #limit(value: number) { this.limited = value }
  @loud static get title() { return "title" }
  @twice static #shared(n: number) { return n }
  @bound who() { return this?.n }
  @watched accessor level = 2;
  @watched static accessor depth = 3;
  @watched accessor #inner = 4;
  accessor plain: string = "plain";
  limited = 0;
  peek() {
    this.#limit = 99;
    this.#inner = 5;
    return [this.#hidden(1), this.#name, this.#inner, Base.shared(4), this.#secret];
  }
  static shared(n: number) { return this.#shared(n) }
}
class Base { static shared(n: number) { return n } }

const item: Any = new Replaced();
const { who } = item;
item.level = 7;
item.plain += "er";
const errors: string[] = [];
for (const broken of [() => 1, () => null, () => "x"]) {
  try { @(broken as any) class A {} } catch (error) { errors.push((error as Error).message) }
  try { class A { @(broken as any) x = 1 } } catch (error) { errors.push((error as Error).message) }
  try { class A { @(broken as any) m() {} } } catch (error) { errors.push((error as Error).message) }
  try { class A { @(broken as any) accessor x = 1 } } catch (error) { errors.push((error as Error).message) }
}
return {
  double: new Plain().double(4), registered: Object.keys(registered), initialized: registered.initialized,
  replaced: [item.extra, Replaced.name, (Replaced as Any).tag, Replaced.self() === Replaced],
  fields: [item.n, item.m, who(), item.level, item.plain, (Replaced as Any).depth],
  peek: item.peek(), limited: item.limited, title: (Replaced as Any).title, keys: Object.keys(item), errors,
};
