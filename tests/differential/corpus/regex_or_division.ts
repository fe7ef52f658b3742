let a = 8, g = 2, i = 1;
const x = a / 2 / g;
const re = /[/\]]+(?<n>\d)\/"'`{/gi, y = a++ / g;
function f() { return /}/.test("}") }
const o = { a: 4 }
const z = o.a / 2, w = (a) / g / i, v = [4][0] / 2;
const t = typeof /x/ === "object" ? /y/.source : "z".replace(/z/g, "/");
if (/a/.test("a")) /b/.exec("b");
return [x, re.source, re.flags, y, f(), z, w, v, t, `${6 / 2}/${/q/.source}`, "a/b".split(/\//), 4 /* / */ / 2 // /
];
