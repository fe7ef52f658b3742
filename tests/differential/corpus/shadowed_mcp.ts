function local(mcp: { fs: { read: (x: number) => number } }) {
  return mcp.fs.read(20);
}
const outer = local({ fs: { read: (x) => x + 1 } });
{
  const capabilities = { go: () => "mine" };
  if (outer) return [outer, capabilities.go(), (await mcp.real.call({ n: 1 })).target];
}
