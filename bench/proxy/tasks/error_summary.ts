// Lines such as: 2026-11-03T08:15:02Z ERROR payments: Timeout after 3000 ms (request 8812)
const { content } = await mcp.filesystem.read_text_file({ path: args.path });
const groups = new Map<string, { service: string; message: string; count: number; first: string; last: string }>();
for (const line of content.split("\n")) {
  const match = /^(\S+) (ERROR|FATAL) ([\w-]+): (.*)$/.exec(line);
  if (!match) continue;
  const [, time, , service, text] = match;
  const message = text.replace(/\b[0-9a-f]{8,}\b/g, "<id>").replace(/\d+/g, "<n>");
  const key = `${service}|${message}`;
  const group = groups.get(key);
  if (group) {
    group.count += 1;
    group.last = time;
  } else {
    groups.set(key, { service, message, count: 1, first: time, last: time });
  }
}
const sorted = [...groups.values()].sort((a, b) => b.count - a.count || a.first.localeCompare(b.first));
const total = sorted.reduce((sum, group) => sum + group.count, 0);
return { total, kinds: sorted.length, top: sorted.slice(0, args.top) };
