// The executable behaves like the code: each program of the corpus runs once as we compile it and once as the TypeScript
// compiler does, and both must return the same result and call the same tools in the same order.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import ts from "typescript";
import { run } from "./sandbox.mjs";

const corpus = new URL("corpus/", import.meta.url);
const files = readdirSync(corpus).filter((name) => name.endsWith(".ts")).sort();
const codes = files.map((name) => readFileSync(new URL(name, corpus), "utf8"));
const root = new URL("../..", import.meta.url);
const command = ["run", "--quiet", "-p", "pml_compile", "--example", "compile"];
const compiled = JSON.parse(
  execFileSync("cargo", command, { cwd: root, input: JSON.stringify(codes), maxBuffer: 1 << 28 }).toString(),
);

function strippedByTypeScript(code) {
  // Inside a function, even type-only imports and exports are errors.
  const withoutImports = code.replace(/^(import type|import \{ type|export type|export interface) .*$/gm, "");
  const wrapped = `async function body(args, mcp, capabilities) {${withoutImports}\n}`;
  const options = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: false };
  const { outputText } = ts.transpileModule(wrapped, { compilerOptions: options });
  return `${outputText}\nreturn await body(args, mcp, capabilities);`;
}

test("the corpus is large enough to mean something", () => assert.ok(files.length >= 40));

for (const [index, name] of files.entries()) {
  const code = codes[index];
  // The first line may give the arguments to run with, one run each.
  const runs = JSON.parse(/^\/\/ args: (.*)$/m.exec(code)?.[1] ?? "[{}]");
  const { executable, structure, error } = compiled[index];

  test(name, async () => {
    assert.equal(error, undefined);
    for (const args of runs) {
      const ours = await run(executable, args);
      const theirs = await run(strippedByTypeScript(code), args);
      const plain = (calls) => calls.map(({ target, argument }) => ({ target, argument }));
      assert.deepEqual(ours.result, theirs.result);
      assert.equal(ours.error, theirs.error);
      assert.deepEqual(plain(ours.calls), plain(theirs.calls));

      const nodes = new Map(structure.nodes.map((node) => [node.id, node]));
      for (const { target, node } of ours.calls.filter((call) => call.node)) {
        assert.equal(nodes.get(node).tool ?? nodes.get(node).capabilityId, target, `${node} calls ${target}`);
      }
      for (const [id] of ours.probes) assert.ok(nodes.has(id), `${id} is a node`);
      const expectedLine = /^.*\/\/ throws here$/m.exec(code);
      if (expectedLine && ours.error) {
        assert.equal(ours.line, code.slice(0, expectedLine.index).split("\n").length);
      }
    }
    const executableLines = executable.split(/\r\n|[\n\r\u2028\u2029]/).length;
    assert.equal(executableLines, code.split(/\r\n|[\n\r\u2028\u2029]/).length);
  });
}
