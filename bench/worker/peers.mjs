// The same tasks under Node: its vm module (a new context, no isolation) and isolated-vm (a new isolate).
// Prints one JSON line per measurement: {"peer", "task", "micros"} with the median.

import vm from "node:vm";
import { performance } from "node:perf_hooks";
import { median, tasks, answer, rows } from "./tasks.mjs";

const report = (peer, task, micros) => console.log(JSON.stringify({ peer, task, micros }));

for (const [task, { code, runs }] of Object.entries(tasks)) {
  const times = [];
  for (let i = 0; i < runs; i++) {
    const begun = performance.now();
    const context = vm.createContext({ args: task === "json" ? JSON.parse(rows) : {}, call: answer });
    const result = await vm.runInContext(`(async () => {${code}})()`, context);
    JSON.stringify(result);
    times.push((performance.now() - begun) * 1000);
  }
  report("node vm", task, median(times));
}

const ivm = await import("isolated-vm").then((module) => module.default, () => undefined);
if (ivm) {
  for (const [task, { code, runs }] of Object.entries(tasks)) {
    const times = [];
    for (let i = 0; i < runs; i++) {
      const begun = performance.now();
      const isolate = new ivm.Isolate({ memoryLimit: 64 });
      const context = await isolate.createContext();
      await context.global.set("callOut", new ivm.Reference((text) => answer(JSON.parse(text)).then(JSON.stringify)));
      await context.global.set("text", task === "json" ? rows : "{}");
      const source = `(async () => { const args = JSON.parse(text);
        const call = async (x) => JSON.parse(await callOut.apply(undefined, [JSON.stringify(x)], { result: { promise: true } }));
        return JSON.stringify(await (async () => {${code}})()) })()`;
      await context.eval(source, { promise: true });
      isolate.dispose();
      times.push((performance.now() - begun) * 1000);
    }
    report("isolated-vm", task, median(times));
  }
}
