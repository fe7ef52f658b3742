// The same tasks in Deno: a Worker with permissions "none" for each run, the way a TypeScript sandbox would do it.

import { median, tasks, answer, rows } from "./tasks.mjs";

const source = `
  let next = 0;
  const pending = new Map();
  const call = (x) => new Promise((resolve) => { pending.set(next, resolve); postMessage({ id: next++, x }) });
  onmessage = async ({ data }) => {
    if (data.code !== undefined) {
      const run = new (async function () {}).constructor("args", "call", data.code);
      postMessage({ result: JSON.stringify(await run(JSON.parse(data.args), call)) });
    } else {
      pending.get(data.id)(data.x);
    }
  };`;
const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));

function run(code, args) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(url, { type: "module", deno: { permissions: "none" } });
    worker.onerror = (event) => reject(new Error(event.message));
    worker.onmessage = async ({ data }) => {
      if ("id" in data) {
        worker.postMessage({ id: data.id, x: await answer(data.x) });
      } else {
        worker.terminate();
        resolve(data.result);
      }
    };
    worker.postMessage({ code, args });
  });
}

for (const [task, { code, runs }] of Object.entries(tasks)) {
  const times = [];
  for (let i = 0; i < Math.min(runs, 50); i++) {
    const begun = performance.now();
    await run(code, task === "json" ? rows : "{}");
    times.push((performance.now() - begun) * 1000);
  }
  console.log(JSON.stringify({ peer: "deno worker", task, micros: median(times) }));
}
Deno.exit(0);
