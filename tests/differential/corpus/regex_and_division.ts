const s = "a/b(c)";
const m = /[/(]/g;
const n = 12 / 3 / 2;
const found = s.match(/\((.)\)/)![1];
if (s) /x/.test(s);
return [s.replace(m, "_"), n, found, n / found!.length, 4 / 2];
