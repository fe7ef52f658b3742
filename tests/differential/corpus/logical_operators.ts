// args: [{"flag": true}, {"flag": false, "name": null}, {"name": "x"}]
const first = args.flag && (await mcp.l.and({ v: 1 }));
const second = args.flag || (await mcp.l.or({ v: 2 })).target;
const third = args.name ?? (await mcp.l.nullish({ v: 3 })).target;
return [first, second, third];
