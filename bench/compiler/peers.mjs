// The same transformation by Babel and by SWC from npm: types stripped, names linked, calls and conditions instrumented.
// Prints the fastest time of each in µs.

import { readFileSync } from "node:fs";
import babel from "@babel/core";
import swc from "@swc/core";

const sample = readFileSync(new URL("samples/digest.ts", import.meta.url), "utf8");
const linked = new Map([["text:summarize", "local.default.text.summarize.a7f3"]]);

function babelPlugin({ types: t }) {
  let next = 0;
  const id = (letter) => t.stringLiteral(`${letter}${++next}`);
  const probe = (name, letter, value) =>
    t.callExpression(t.memberExpression(t.identifier("__pml"), t.identifier(name)), [id(letter), value]);
  return {
    visitor: {
      CallExpression(path) {
        const { callee } = path.node;
        if (!t.isMemberExpression(callee) || !t.isMemberExpression(callee.object)) return;
        if (!t.isIdentifier(callee.object.object, { name: "mcp" }) || path.scope.hasBinding("mcp")) return;
        const fqdn = linked.get(`${callee.object.property.name}:${callee.property.name}`);
        const target = fqdn ? t.memberExpression(t.identifier("mcp"), t.stringLiteral(fqdn), true) : callee;
        path.node.callee = probe("at", "n", target);
      },
      "IfStatement|ConditionalExpression"(path) {
        path.node.test = probe("branch", "d", path.node.test);
      },
    },
  };
}

function withBabel() {
  return babel.transformSync(sample, {
    filename: "digest.ts",
    configFile: false,
    babelrc: false,
    presets: ["@babel/preset-typescript"],
    plugins: [babelPlugin],
    parserOpts: { allowReturnOutsideFunction: true, allowAwaitOutsideFunction: true },
    cwd: new URL(".", import.meta.url).pathname,
  }).code;
}

const span = { start: 0, end: 0, ctxt: 0 };

/** SWC's plugins are WebAssembly; from JavaScript we visit the syntax tree that it returns as an object. */
function walk(node, next) {
  if (Array.isArray(node)) {
    for (const child of node) walk(child, next);
    return;
  }
  if (node === null || typeof node !== "object") return;
  for (const key in node) walk(node[key], next);
  const name = (value) => ({ type: "Identifier", span, ctxt: 0, value, optional: false });
  const probe = (method, letter, value) => ({
    type: "CallExpression",
    span,
    ctxt: 0,
    callee: { type: "MemberExpression", span, object: name("__pml"), property: { type: "Identifier", span, value: method } },
    arguments: [
      { spread: null, expression: { type: "StringLiteral", span, value: `${letter}${++next.count}` } },
      { spread: null, expression: value },
    ],
    typeArguments: null,
  });
  if (node.type === "IfStatement" || node.type === "ConditionalExpression") node.test = probe("branch", "d", node.test);
  const inner = node.type === "CallExpression" && node.callee.type === "MemberExpression" && node.callee.object;
  if (inner && inner.type === "MemberExpression" && inner.object.value === "mcp") {
    const fqdn = linked.get(`${inner.property.value}:${node.callee.property.value}`);
    const computed = { type: "Computed", span, expression: { type: "StringLiteral", span, value: fqdn } };
    const target = fqdn ? { type: "MemberExpression", span, object: name("mcp"), property: computed } : node.callee;
    node.callee = probe("at", "n", target);
  }
}

function withSwc() {
  const wrapped = `async function body(args, mcp, capabilities) {${sample}}`;
  const tree = swc.parseSync(wrapped, { syntax: "typescript", target: "es2022" });
  walk(tree, { count: 0 });
  return swc.transformSync(tree, { jsc: { target: "es2022", parser: { syntax: "typescript" } } }).code;
}

function fastest(work) {
  if (!work().includes("__pml")) throw new Error("the transformation did nothing");
  let best = Infinity;
  const until = performance.now() + 1500;
  while (performance.now() < until) {
    const start = performance.now();
    work();
    best = Math.min(best, performance.now() - start);
  }
  return best * 1000;
}

console.log(JSON.stringify({ babel: fastest(withBabel), swc: fastest(withSwc) }));
