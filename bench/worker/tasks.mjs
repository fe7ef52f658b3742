// The tasks that every peer runs, in a form that each of them can wrap: `call` is its tool, `args` its arguments.

export const tasks = {
  trivial: { code: "return 1 + 1", runs: 200 },
  sequential: { code: "for (let i = 0; i < 10; i++) await call({ i })", runs: 100 },
  parallel: { code: "await Promise.all(Array.from({ length: 50 }, (_, i) => call({ i })))", runs: 100 },
  json: { code: "return args", runs: 20 },
  compute: {
    code: "let n = 0; for (let i = 2; i < 60000; i++) { let p = true; for (let j = 2; j * j <= i; j++) if (i % j === 0) { p = false; break } if (p) n++ } return n",
    runs: 5,
  },
};

export const answer = async (args) => args;

export const rows = JSON.stringify(
  Array.from({ length: 13000 }, (_, id) => ({ id, name: `row ${id}`, tags: ["alpha", "beta"], score: id / 7, ok: true })),
);

export const median = (times) => times.sort((a, b) => a - b)[Math.floor(times.length / 2)];
