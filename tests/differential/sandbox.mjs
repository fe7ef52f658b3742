// The environment that code runs in: deterministic tools, and the probes of the executable.

const AsyncFunction = (async () => {}).constructor;

/** A tool's answer: a pure function of its name and argument, so that two runs can be compared. */
function answer(target, argument, count) {
  if (target.startsWith("fail:")) throw new Error(`${target} failed`);
  return {
    target,
    count,
    ok: true,
    exists: argument?.path !== "missing",
    value: argument?.value ?? argument?.n ?? null,
    content: `content of ${JSON.stringify(argument)}`,
    items: [{ id: 1, name: "one" }, { id: 2, name: "two" }, { id: 3, name: "three" }],
  };
}

/** Runs a function body like the sandbox; returns its result or error, its calls and the probes it hit. */
export async function run(body, args) {
  const calls = [];
  const probes = [];
  let node;
  const invoke = (target, argument) => {
    calls.push({ target, argument: structuredClone(argument), node });
    const count = calls.length;
    return Promise.resolve().then(() => answer(target, argument, count));
  };
  const action = (name) => (argument) => invoke(name, argument);
  const namespace = (name) =>
    new Proxy(action(name), { get: (_, key) => (typeof key === "string" ? action(`${name}:${key}`) : undefined) });
  const mcp = new Proxy({}, { get: (_, key) => (typeof key === "string" ? namespace(key) : undefined) });
  const capabilities = new Proxy({}, { get: (_, key) => (typeof key === "string" ? action(key) : undefined) });
  const __pml = {
    at: (id, fn) =>
      fn == null ? fn : (...rest) => {
        const outer = node;
        node = id;
        try {
          return fn(...rest);
        } finally {
          node = outer;
        }
      },
    branch: (id, value) => (probes.push([id, String(Boolean(value))]), value),
    nullish: (id, value) => (probes.push([id, String(value == null)]), value),
    outcome: (id, label) => void probes.push([id, label]),
    visit: (id) => void probes.push([id]),
    thrown: (value) => value,
    returned: (value) => value,
  };
  const program = new AsyncFunction("args", "mcp", "capabilities", "__pml", `"use strict";${body}`);
  try {
    return { result: await program(structuredClone(args), mcp, capabilities, __pml), calls, probes };
  } catch (error) {
    return { error: error.message, line: lineOf(error), calls, probes };
  }
}

/** The line of the body that threw the error; the function's header takes two lines. */
function lineOf(error) {
  const place = /<anonymous>:(\d+):\d+\)?$/m.exec(error.stack ?? "");
  return place ? Number(place[1]) - 2 : undefined;
}
