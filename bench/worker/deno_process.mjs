// One run as a Deno process of its own: reads a task's name and arguments, asks its parent for every call, line by line.

import { tasks } from "./tasks.mjs";

const lines = Deno.stdin.readable.pipeThrough(new TextDecoderStream());
const reader = lines.getReader();
let rest = "";
async function line() {
  for (;;) {
    const end = rest.indexOf("\n");
    if (end >= 0) {
      const found = rest.slice(0, end);
      rest = rest.slice(end + 1);
      return found;
    }
    const { value, done } = await reader.read();
    if (done) return undefined;
    rest += value;
  }
}
const encoder = new TextEncoder();
function say(message) {
  let bytes = encoder.encode(JSON.stringify(message) + "\n");
  while (bytes.length > 0) bytes = bytes.subarray(Deno.stdout.writeSync(bytes));
}

const { task, args } = JSON.parse(await line());
let next = 0;
const pending = new Map();
const call = (x) => new Promise((resolve) => { pending.set(next, resolve); say({ id: next++, x }); });
(async () => {
  for (let text; (text = await line()) !== undefined; ) {
    const { id, x } = JSON.parse(text);
    pending.get(id)(x);
  }
})();
const run = new (async function () {}).constructor("args", "call", tasks[task].code);
say({ result: await run(args, call) });
Deno.exit(0);
