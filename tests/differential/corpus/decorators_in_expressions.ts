// args: [{"level": 1}, {"level": 3}]
// Classes that are values, with decorators that use tools, closures and what is private.
const names: string[] = [];
const tag = (text: string) => (value: any, context: any) => { names.push(`${text} ${context.kind} ${String(context.name)}`) };
const Anonymous = @tag("a") class { @tag("b") x = () => 1 };
const Named = @tag("c") class Inner { static me = () => Inner; @tag("d") static y = class {} };
let assigned; assigned = @tag("e") class {};
const table = { entry: @tag("f") class { @tag("g") m() { return "m" } } };
const plain = class { @tag("h") z = 1 };
const made = new (@tag("i") class { value = 5 })().value;

function mixin(level: number) {
  return class Level { @tag(`level ${level}`) own = level; @tag("k") #secret = level * 2; get secret() { return this.#secret } };
}
const levels = [1, 2].map(mixin).map((Class) => { const it = new Class(); return [it.own, it.secret] });

const settings = await mcp.config.read({ level: args.level });
const limited = (method: any, { access, name }: any) => function (this: any, n: number) {
  return n > settings.value ? "refused" : method.call(this, n) + (access.has(this) ? name : "");
};
const tool = (await mcp.names.make({ value: "tool" })).value;
@tag(tool)
class Uses {
  @limited
  ask(n: number): any { return `asked ${n} ` }
  @tag("field") private readonly client = mcp.http;
  async get() { return (await this.client.get({ value: args.level })).value }
}
const uses = new Uses();
const context: any[] = [];
class Access {
  @((_: any, { access }: any) => void context.push(access)) #p = 1;
  @((_: any, { access }: any) => void context.push(access)) q = 2;
}
const it = new Access();
context[0].set(it, 10); context[1].set(it, 20);
const seen = [...context.map((access) => access.get(it)), ...context.map((access) => [access.has(it), access.has({})])];
return {
  names, made, levels, seen, keys: Object.keys(it), self: Named.me() === Named,
  classes: [Anonymous.name, Named.name, assigned.name, table.entry.name, plain.name],
  answers: [uses.ask(args.level), uses.ask(2), await uses.get()], m: new table.entry().m(),
};
