const a = await mcp?.fs?.read?.({ n: 1 });
const b = (await mcp.fs?.read({ n: 2 })).value;
const none: any = undefined;
const c = await none?.fs.read({ n: 3 });
return [a?.target, b, c];
