const read = async (path: string) => JSON.parse((await mcp.filesystem.read_text_file({ path })).content);
const left = await read(args.left);
const right = await read(args.right);
type Change = { path: string; change: "added" | "removed" | "changed"; left?: unknown; right?: unknown };
const changes: Change[] = [];
const secret = /password|secret|token|key$/i;
const shown = (path: string, value: unknown) => (secret.test(path) ? "***" : value);
const isObject = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value);
function compare(a: any, b: any, path: string) {
  if (isObject(a) && isObject(b)) {
    for (const key of [...new Set([...Object.keys(a), ...Object.keys(b)])].sort()) {
      const here = path ? `${path}.${key}` : key;
      if (!(key in b)) changes.push({ path: here, change: "removed", left: shown(here, a[key]) });
      else if (!(key in a)) changes.push({ path: here, change: "added", right: shown(here, b[key]) });
      else compare(a[key], b[key], here);
    }
  } else if (JSON.stringify(a) !== JSON.stringify(b)) {
    changes.push({ path, change: "changed", left: shown(path, a), right: shown(path, b) });
  }
}
compare(left, right, "");
return { same: changes.length === 0, changes };
