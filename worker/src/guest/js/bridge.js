// What the code finds around it: mcp, capabilities, __pml, timers, and names for everything that loads on first use.
// Runs before the code does, so what it takes from the engine here is untouched; `native` never reaches the code.

export default function install(native) {
  const { Proxy, Promise, Reflect, Error, TypeError, Symbol, Object, String, Number, Function } = globalThis;
  const { is } = Object;
  const { apply, defineProperty, get: reflectGet, getOwnPropertyDescriptor } = Reflect;
  const hidden = (value) => ({ __proto__: null, value, writable: true, configurable: true, enumerable: false });
  const define = (object, name, value) => defineProperty(object, name, hidden(value));

  // --- calls -------------------------------------------------------------------------------------------------------

  const pending = { __proto__: null };
  let currentNode = null;
  // The calls that nobody awaited, from the moment the code returned.
  let unawaited = null;
  // The calls that are no longer made, once the run has ended.
  let missed = null;
  let missedCount = 0;

  // What a target is called in what people and models read, where that isn't its key.
  const names = { __proto__: null };
  const nameOf = (target) => names[target] ?? target;

  function setName(target, name) {
    names[target] = name;
  }

  class ToolError extends Error {
    constructor(name, message, data, origin) {
      super(`${name}: ${message}`);
      define(this, "tool", name);
      if (data !== undefined) define(this, "data", data);
      // The rejection arrives with no frame of the code on the stack; the line that called is the one to show.
      define(this, "stack", origin.stack);
    }
  }
  define(ToolError.prototype, "name", "ToolError");

  function invoke(kind, target, input) {
    const node = currentNode;
    try {
      const name = nameOf(target);
      if (missed) {
        missed[missedCount++] = { __proto__: null, target: String(target), origin: new Error() };
        return new Promise(() => {});
      }
      const id = native.call(kind, target, name, node, input);
      const call = { __proto__: null, id, name, node, origin: new Error() };
      if (unawaited) unawaited[id] = call;
      return new Promise((resolve, reject) => {
        call.resolve = resolve;
        call.reject = reject;
        pending[id] = call;
      });
    } catch (error) {
      return new Promise((_, reject) => reject(error));
    }
  }

  // Which node and target an error came from; the code can't reach it.
  const failedCalls = new WeakMap();
  const { get: weakGet, set: weakSet } = WeakMap.prototype;

  function settle(id, succeeded, value, data) {
    const call = pending[id];
    delete pending[id];
    if (succeeded) {
      call.resolve(value);
    } else {
      const error = new ToolError(call.name, value, data, call.origin);
      apply(weakSet, failedCalls, [error, call]);
      call.reject(error);
    }
  }

  function codeReturned() {
    unawaited = { __proto__: null };
    for (const id in pending) unawaited[id] = pending[id];
    return unawaited;
  }

  function codeEnded() {
    missed = { __proto__: null };
    return missed;
  }

  // What the code threw or returned last, and where: only errors have a stack of their own.
  let lastThrown = null;
  let lastReturned = null;
  const here = (value) => ({ __proto__: null, value, origin: new Error() });

  // Where the code got what ended its run from: a call that failed, a `throw` or a `Promise.reject`.
  function failedCall(error) {
    const call = typeof error === "object" && error !== null ? apply(weakGet, failedCalls, [error]) : undefined;
    return call ?? (lastThrown && is(lastThrown.value, error) ? lastThrown : undefined);
  }

  // The engine calls it while the promise is being rejected, so the code that rejects it is on the stack.
  function rejected(reason) {
    const call = failedCall(reason);
    if (call === undefined) lastThrown = here(reason);
    return call;
  }

  function returnedFrom() {
    return lastReturned;
  }

  // Names that the language itself asks objects for; answering with a tool would make them thenables or break JSON.
  const notTools = { __proto__: null, then: true, toJSON: true, toString: true, valueOf: true, constructor: true, prototype: true };

  function readOnly(shown) {
    return () => {
      throw new TypeError(`${shown} is read-only`);
    };
  }

  function caller(kind, target) {
    const name = nameOf(target);
    return { [name]: (input) => invoke(kind, target, input) }[name];
  }

  // A linked capability: a function with what functions have, and nothing else to call.
  function capability(kind, target) {
    const name = nameOf(target);
    const refuse = readOnly(name);
    return new Proxy(caller(kind, target), {
      __proto__: null,
      get(f, key) {
        if (typeof key === "symbol" || key in f) return reflectGet(f, key, f);
        if (notTools[key]) return undefined;
        return () => {
          throw new TypeError(`${name} is a capability and has no "${key}" to call: call ${name} itself, or mcp["${name}:${key}"] if that was meant`);
        };
      },
      set: refuse,
      defineProperty: refuse,
      deleteProperty: refuse,
      setPrototypeOf: refuse,
      preventExtensions: refuse,
    });
  }

  // An object whose every property is made by `make`, once.
  function open(shown, callable, make) {
    const made = { __proto__: null };
    const toString = () => shown;
    const refuse = readOnly(shown);
    return new Proxy(callable, {
      __proto__: null,
      get(target, key) {
        if (typeof key === "symbol") return key === Symbol.toStringTag ? shown : reflectGet(target, key, target);
        if (key === "toString" || key === "valueOf") return toString;
        if (notTools[key]) return undefined;
        return (made[key] ??= make(key));
      },
      getPrototypeOf: () => null,
      ownKeys: () => [],
      getOwnPropertyDescriptor: () => undefined,
      has: (target, key) => typeof key === "string" && !notTools[key],
      set: refuse,
      defineProperty: refuse,
      deleteProperty: refuse,
      setPrototypeOf: refuse,
      preventExtensions: refuse,
    });
  }

  // Methods have no `prototype`, so a proxy around one may say that it has no keys at all.
  const bare = (f) => {
    const { m } = { m(input) { return f(input); } };
    delete m.name;
    delete m.length;
    return m;
  };

  const mcp = open("mcp", { __proto__: null }, (namespace) =>
    names[namespace] !== undefined
      ? capability("tool", namespace)
      : open(`mcp.${namespace}`, bare((input) => invoke("tool", namespace, input)), (action) => caller("tool", `${namespace}:${action}`)),
  );
  const capabilities = open("capabilities", { __proto__: null }, (name) =>
    names[name] !== undefined ? capability("capability", name) : caller("capability", name),
  );

  // --- source ------------------------------------------------------------------------------------------------------

  // The code's functions are compiled: their text has FQDNs and probes, which nobody who wrote the code has seen.
  const { toString: sourceOf } = Function.prototype;
  define(Function.prototype, "toString", {
    toString() {
      if (typeof this !== "function") return apply(sourceOf, this, []);
      const name = getOwnPropertyDescriptor(this, "name")?.value;
      return `function ${typeof name === "string" ? name : ""}() {\n    [native code]\n}`;
    },
  }.toString);

  // --- instrumentation ---------------------------------------------------------------------------------------------

  const probes = {
    at(node, f) {
      if (typeof f !== "function") return f;
      return function (...args) {
        const outer = currentNode;
        currentNode = node;
        try {
          return apply(f, this, args);
        } finally {
          currentNode = outer;
        }
      };
    },
    branch(node, value) {
      native.decision(node, value ? "true" : "false");
      return value;
    },
    nullish(node, value) {
      native.decision(node, value === null || value === undefined ? "true" : "false");
      return value;
    },
    outcome(node, label) {
      native.decision(node, String(label));
    },
    visit(node) {
      native.visit(node);
    },
    thrown(value) {
      lastThrown = here(value);
      return value;
    },
    returned(value) {
      lastReturned = here(value);
      return value;
    },
  };
  define(globalThis, "__pml", Object.freeze(probes));

  // --- timers ------------------------------------------------------------------------------------------------------

  const timers = { __proto__: null };
  let lastTimer = 0;

  function schedule(repeats, callback, delay, args) {
    if (typeof callback !== "function") throw new TypeError("a timer needs a function to call");
    const id = ++lastTimer;
    const wait = Number(delay);
    const milliseconds = wait > 0 ? (wait < 2147483647 ? wait : 2147483647) : 0;
    timers[id] = { __proto__: null, callback, args, repeats, milliseconds: repeats && milliseconds < 1 ? 1 : milliseconds };
    native.startTimer(id, timers[id].milliseconds);
    return id;
  }

  function stop(id) {
    if (timers[id]) {
      delete timers[id];
      native.stopTimer(id);
    }
  }

  function fire(id) {
    const timer = timers[id];
    if (!timer) return;
    if (timer.repeats) native.startTimer(id, timer.milliseconds);
    else delete timers[id];
    apply(timer.callback, undefined, timer.args);
  }

  define(globalThis, "setTimeout", function setTimeout(callback, delay, ...args) { return schedule(false, callback, delay, args); });
  define(globalThis, "setInterval", function setInterval(callback, delay, ...args) { return schedule(true, callback, delay, args); });
  define(globalThis, "clearTimeout", function clearTimeout(id) { stop(id); });
  define(globalThis, "clearInterval", function clearInterval(id) { stop(id); });

  // --- what loads on first use -------------------------------------------------------------------------------------

  const parts = { __proto__: null };

  function lazily(part, names) {
    for (let i = 0; i < names.length; i++) {
      const name = names[i];
      defineProperty(globalThis, name, {
        __proto__: null,
        configurable: true,
        enumerable: false,
        get() {
          const made = (parts[part] ??= native.load(part)(native, { define }));
          for (let j = 0; j < names.length; j++) define(globalThis, names[j], made[names[j]]);
          return made[name];
        },
        set(value) {
          define(globalThis, name, value);
        },
      });
    }
  }

  lazily("console", ["console"]);
  lazily("url", ["URL", "URLSearchParams"]);
  lazily("encoding", ["TextEncoder", "TextDecoder"]);
  lazily("clone", ["structuredClone"]);
  lazily("abort", ["AbortController", "AbortSignal", "Event", "EventTarget"]);
  lazily("crypto", ["crypto"]);

  // --- what isn't there --------------------------------------------------------------------------------------------

  function absent(name, what) {
    return new TypeError(`${name} is not available: the sandbox has no ${what}. Call a tool instead, for example mcp.server.tool({ … })`);
  }

  const missingFunctions = {
    __proto__: null,
    fetch: "network", XMLHttpRequest: "network", WebSocket: "network", EventSource: "network",
    require: "modules or files", Worker: "threads or processes", importScripts: "modules or files",
  };
  for (const name in missingFunctions) {
    define(globalThis, name, { [name]: function () { throw absent(name, missingFunctions[name]); } }[name]);
  }
  const missingObjects = { __proto__: null, process: "processes or environment", Deno: "files, network or processes", Bun: "files, network or processes" };
  for (const name in missingObjects) {
    const refuse = (target, key) => {
      if (typeof key === "symbol") return undefined;
      throw absent(`${name}.${key}`, missingObjects[name]);
    };
    define(globalThis, name, new Proxy({ __proto__: null }, { __proto__: null, get: refuse, set: refuse, has: refuse }));
  }

  return { mcp, capabilities, settle, fire, setName, codeReturned, codeEnded, failedCall, rejected, returnedFrom };
}
