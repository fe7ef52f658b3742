const __pml_decorators = (classDecorators, className) => {
  const elements = [];
  const placeholders = [];
  const extra = { class: [], static: [], instance: [] };
  let home;
  let target;
  let metadata;
  const isFunction = (value) => {
    if (typeof value !== "function") throw new TypeError("Function expected");
    return value;
  };
  const run = (self, functions) => functions.forEach((each) => each.call(self));
  const setName = (value, name) => {
    const known = Object.getOwnPropertyDescriptor(value, "name");
    const text = typeof name === "symbol" ? (name.description ? `[${name.description}]` : "") : name;
    if (!known || known.value === "") Object.defineProperty(value, "name", { value: text, configurable: true });
    return value;
  };
  const decorate = (decorators, value, facts, access, initializers, take) => {
    for (const decorator of decorators.slice().reverse()) {
      let isDone = false;
      const context = { ...facts, ...(access && { access: { ...access } }), metadata };
      context.addInitializer = (initializer) => {
        if (isDone) throw new TypeError("Cannot add initializers after decoration has completed");
        initializers.push(isFunction(initializer));
      };
      const result = decorator(value, context);
      isDone = true;
      if (result !== undefined) value = take(result, value);
    }
    return value;
  };
  const takeAccessor = (element) => (result, value) => {
    if (result === null || typeof result !== "object") throw new TypeError("Object expected");
    const { get = value.get, set = value.set, init } = result;
    if (init !== undefined) element.initial.unshift(isFunction(init));
    return { get: isFunction(get), set: isFunction(set) };
  };
  const takeField = (element) => (result) => void element.initial.unshift(isFunction(result));
  const accessOf = (kind, name, secret) => {
    const [get, set, has] = secret ?? [(object) => object[name], (object, value) => { object[name] = value; }, (object) => name in object];
    return { has, ...(kind !== "setter" && { get }), ...((kind === "setter" || kind === "field" || kind === "accessor") && { set }) };
  };
  const decorateElement = (element, secret) => {
    const { kind, name, isStatic, decorators } = element;
    const facts = { kind, name, static: isStatic, private: Boolean(secret) };
    const access = accessOf(kind, name, secret);
    const part = { method: "value", getter: "get", setter: "set" }[kind];
    if (kind === "field") {
      decorate(decorators, undefined, facts, access, element.after, takeField(element));
      return;
    }
    const holder = isStatic ? home : home.prototype;
    const key = secret ? element.hidden : name;
    const descriptor = secret && kind === "accessor" ? { get: secret[3], set: secret[4] } : Object.getOwnPropertyDescriptor(holder, key);
    if (secret && part) Object.defineProperty(descriptor[part], "name", { value: `${part === "value" ? "" : `${part} `}${name}`, configurable: true });
    if (kind === "accessor") {
      const { get, set } = descriptor;
      Object.assign(descriptor, decorate(decorators, { get, set }, facts, access, element.after, takeAccessor(element)));
    } else {
      const after = isStatic ? extra.static : extra.instance;
      descriptor[part] = decorate(decorators, descriptor[part], facts, access, after, isFunction);
    }
    if (!secret) Object.defineProperty(holder, key, descriptor);
    else if (part) delete holder[key];
    element.made = descriptor;
  };
  return {
    element(kind, isStatic, name, decorators) {
      elements.push({ kind, isStatic, name, decorators, initial: [], after: [], hidden: Symbol() });
      placeholders.push(Symbol());
      return placeholders.at(-1);
    },
    key(index, value) {
      return (elements[index].name = typeof value === "symbol" ? value : String(value));
    },
    name: (index) => elements[index].name,
    hidden: (index) => elements[index].hidden,
    apply(made, secrets) {
      home = target = made;
      placeholders.forEach((key) => delete made[key]);
      if (className !== undefined) setName(made, className);
      metadata = Symbol.metadata && Object.create(Object.getPrototypeOf(made)?.[Symbol.metadata] ?? null);
      for (const [isField, isStatic] of [[false, true], [false, false], [true, true], [true, false]]) {
        elements.forEach((element, index) => {
          if ((element.kind === "field") === isField && element.isStatic === isStatic) decorateElement(element, secrets[index]);
        });
      }
      target = decorate(classDecorators, made, { kind: "class", name: made.name }, undefined, extra.class, isFunction);
      if (metadata) Object.defineProperty(target, Symbol.metadata, { value: metadata, enumerable: true, configurable: true, writable: true });
      run(target, extra.static);
      return target;
    },
    start: (self) => run(self, extra.instance),
    named: (index, value) => setName(value, elements[index].name),
    initial: (index, self, value) =>
      elements[index].initial.reduce((before, each) => each.call(elements[index].isStatic ? target : self, before), value),
    after: (index, self) => run(elements[index].isStatic ? target : self, elements[index].after),
    method: (index) => elements[index].made.value,
    get: (index, self) => elements[index].made.get.call(self),
    set: (index, self, value) => void elements[index].made.set.call(self, value),
    home: () => home,
    finish() {
      run(target, extra.class);
      return target;
    },
  };
};
