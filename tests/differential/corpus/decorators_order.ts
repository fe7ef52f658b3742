// Everything reports when it runs: expressions from top to bottom, decorators from the inside out, initializers at their time.
const log: string[] = [];
const note = (text: string) => { log.push(text); return text };
const d = (name: string) => {
  note(`evaluate ${name}`);
  return (value: any, context: any) => {
    note(`apply ${name} to ${context.kind} ${String(context.name)} ${context.static} ${context.private} ${typeof value}`);
    note(Object.keys(context).join() + " " + Object.keys(context.access ?? {}).join());
    context.addInitializer(function (this: any) { note(`initializer of ${name}, ${typeof this}`) });
    return context.kind === "field" ? (initial: unknown) => { note(`${name} sees ${typeof initial}`); return initial } : undefined;
  };
};

@d("class outer")
@d("class inner")
class Base extends (note("heritage"), Object) {
  static { note("static block") }
  @d("static field") static count = (note("static value"), 1);
  @d("field one")
  @d("field two") public readonly one: number = (note("value of one"), 1);
  @d("method") @d("method again") run<T>(x: T): T { note("run"); return x }
  @d("static method") static make() { return new Base() }
  @d("getter") get half() { return this.one / 2 }
  @d("setter") set half(value: number) { note(`set ${value}`) }
  @d("computed") [note("key")]() { return "computed" }
  @d("computed field") [note("field key")] = (note("value of computed"), 3);
  @d("async") async later() { return "later" }
  @d("generator") *items() { yield 1 }
  plain = (note("plain"), 2);
  @d("bare") bare?: string;
  @d("string key") "with-dash" = 1;
  @d("number key") 42 = 2;
  constructor(private readonly given: number = 7) { super(); note(`constructor ${given} ${this.one}`) }
}

const made = Base.make();
made.half = 3;
const rest = [made.half, made.run("r"), (made as any).key(), (made as any)["field key"], await made.later(), [...made.items()], made["with-dash"], made[42], Base.count, Base.name, Object.keys(made)];
return { log, rest };
