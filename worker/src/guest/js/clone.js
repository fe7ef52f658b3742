// structuredClone: a deep copy of what the HTML standard lets be copied, cycles included.

export default function install() {
  const { Array, ArrayBuffer, BigInt, Boolean, DataView, Date, Error, Map, Number, Object, RegExp, Set, String } = globalThis;
  const tagOf = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag).get;
  const errorNames = ["Error", "EvalError", "RangeError", "ReferenceError", "SyntaxError", "TypeError", "URIError"];

  // A method that throws unless `this` is of its class tells what an object is, whatever its prototype says.
  const probe = (method) => (value) => {
    try {
      method.call(value);
      return true;
    } catch {
      return false;
    }
  };
  const getter = (prototype, name) => Object.getOwnPropertyDescriptor(prototype, name).get;
  const isDate = probe(Date.prototype.getTime);
  const isMap = probe(getter(Map.prototype, "size"));
  const isSet = probe(getter(Set.prototype, "size"));
  const isBuffer = probe(getter(ArrayBuffer.prototype, "byteLength"));
  const isNumber = probe(Number.prototype.valueOf);
  const isString = probe(String.prototype.valueOf);
  const isBoolean = probe(Boolean.prototype.valueOf);
  const isBigInt = probe(BigInt.prototype.valueOf);

  function refuse(what) {
    throw new DOMException(`${what} could not be cloned`, "DataCloneError");
  }

  function copy(value, seen) {
    if (typeof value === "symbol") refuse("A symbol");
    if (typeof value === "function") refuse(`The function ${value.name || "(anonymous)"}`);
    if (typeof value !== "object" || value === null) return value;
    if (seen.has(value)) return seen.get(value);
    const keep = (made) => {
      seen.set(value, made);
      return made;
    };

    if (Array.isArray(value)) {
      const made = keep(new Array(value.length));
      for (const key of Object.keys(value)) made[key] = copy(value[key], seen);
      return made;
    }
    if (ArrayBuffer.isView(value)) {
      const buffer = copy(value.buffer, seen);
      const name = tagOf.call(value);
      return keep(
        name === undefined
          ? new DataView(buffer, value.byteOffset, value.byteLength)
          : new globalThis[name](buffer, value.byteOffset, value.length),
      );
    }
    if (isBuffer(value)) return keep(value.slice(0));
    if (isDate(value)) return keep(new Date(value.getTime()));
    if (isMap(value)) {
      const made = keep(new Map());
      for (const [key, item] of [...value]) made.set(copy(key, seen), copy(item, seen));
      return made;
    }
    if (isSet(value)) {
      const made = keep(new Set());
      for (const item of [...value]) made.add(copy(item, seen));
      return made;
    }
    if (Error.isError?.(value) ?? value instanceof Error) {
      const name = errorNames.includes(value.name) ? value.name : "Error";
      const made = keep(new globalThis[name](value.message));
      Object.defineProperty(made, "stack", { value: String(value.stack), writable: true, configurable: true });
      if ("cause" in value) made.cause = copy(value.cause, seen);
      return made;
    }
    if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
    if (isNumber(value) || isString(value) || isBoolean(value) || isBigInt(value)) return keep(Object(value.valueOf()));
    if (value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet || value instanceof WeakRef) {
      refuse(`A ${value.constructor?.name}`);
    }
    const made = keep({});
    for (const key of Object.keys(value)) {
      Object.defineProperty(made, key, { value: copy(value[key], seen), writable: true, enumerable: true, configurable: true });
    }
    return made;
  }

  return {
    structuredClone(value, options) {
      if (arguments.length === 0) throw new TypeError("structuredClone needs a value");
      if (options?.transfer?.length > 0) refuse("There is nobody to transfer to: the value");
      return copy(value, new Map());
    },
  };
}
