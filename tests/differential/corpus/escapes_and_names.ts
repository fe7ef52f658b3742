const \u0061bc = 1, ünï = 2, 日本 = 3, $ = 4, _ = 5, \u{62}d = 6, ℮ = 7, a\u{300} = 8;
const o = { ünï, "日 本": 1, \u0063: 2, 'mcp': 3, [`k${ünï}`]: 4, 0x10: 5, .5: 6, 1e3: 7 };
const s = 'a\
b\x41\u{1F600}\0' + "\u2028" + "  ";
await mcp["日本"].test({ "ü": ünï, o });
return [abc, ünï, 日本, $, _, bd, ℮, à, o, s, "😀".length, 1_000, 0b11, 0o17, 10n.toString(), .5];
