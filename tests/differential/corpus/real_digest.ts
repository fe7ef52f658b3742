// args: [{"repos":["a/b","c/d"],"since":"2024-01-01"},{"repos":[],"since":"2024-01-01","dryRun":true}]
/** What an agent writes: fetch in parallel, retry, group, decide, report. */
interface Item { id: number; name: string; score?: number }
type Result<T> = { ok: true; value: T } | { ok: false; error: string };
const { repos = [], since, dryRun = false, limit = 3 } = args as { repos?: string[]; since: string; dryRun?: boolean; limit?: number };
async function retry<T>(times: number, work: () => Promise<T>): Promise<Result<T>> {
  let last = "";
  for (let attempt = 0; attempt < times; attempt++) {
    try { return { ok: true, value: await work() } }
    catch (error) { last = (error as Error)?.message ?? String(error) }
  }
  return { ok: false, error: last };
}
const fetched = await Promise.all(repos.map((repo) => retry(2, () => repo.startsWith("a") ? mcp.github.list({ repo, since }) : mcp.fail.list({ repo }))));
const good = fetched.flatMap((r) => (r.ok ? r.value.items as Item[] : []));
const byLength = good.reduce<Record<number, Item[]>>((all, item) => ({ ...all, [item.name.length]: [...(all[item.name.length] ?? []), item] }), {});
const errors = fetched.filter((r): r is Extract<typeof r, { ok: false }> => !r.ok).map(({ error }) => error);
const summary = Object.entries(byLength).slice(0, limit).map(([length, items]) => `${length}: ${items.map((i) => i.name).join("/")}`);
if (!dryRun && summary.length > 0) { await capabilities.postDigest({ text: summary.join("\n"), errors }) }
else if (errors.length) await mcp.log.warn({ errors });
else { await mcp.log.info?.({ message: "nothing" }) }
return { summary, errors, posted: !dryRun && summary.length > 0 };
