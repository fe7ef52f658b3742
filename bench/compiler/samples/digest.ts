// Collects the open issues of several repositories, has them summarized and posts the digest.
interface Issue { id: number; title: string; labels: string[]; body?: string }
type Digest = { repo: string; summary: string; count: number };

const { repos, channel = "#digest", since, dryRun = false }: { repos: string[]; channel?: string; since: string; dryRun?: boolean } = args;
const limit = args.limit ?? 20;
const digests: Digest[] = [];

async function summarize(repo: string, issues: Issue[]): Promise<Digest> {
  const text = issues.map((issue) => `#${issue.id} ${issue.title}`).join("\n");
  if (text.length > 4000) {
    const parts = await Promise.all([
      mcp.text.summarize({ text: text.slice(0, 4000), style: "short" }),
      mcp.text.summarize({ text: text.slice(4000), style: "short" }),
    ]);
    return { repo, summary: parts.map((part) => part.content).join(" "), count: issues.length };
  }
  const { content } = await mcp.text.summarize({ text, style: "short" });
  return { repo, summary: content as string, count: issues.length };
}

for (const repo of repos) {
  try {
    const page = await mcp.github.listIssues({ repo, state: "open", since, limit });
    const open = (page.items as Issue[]).filter((issue) => !issue.labels.includes("wontfix"));
    if (open.length === 0) {
      await mcp.log.info({ message: `nothing new in ${repo}` });
      continue;
    }
    digests.push(await summarize(repo, open));
  } catch (error) {
    await mcp.log.warn({ message: `skipped ${repo}: ${(error as Error).message}` });
  }
}

switch (digests.length) {
  case 0:
    return { posted: false, reason: "no issues" };
  case 1:
    await mcp.chat.post({ channel, text: digests[0]!.summary });
    break;
  default: {
    const body = digests.map((digest) => `*${digest.repo}* (${digest.count}): ${digest.summary}`).join("\n");
    const stored = await mcp.fs.writeFile({ path: `/digests/${since}.md`, content: body });
    dryRun || (await mcp.chat.post({ channel, text: body, attachment: stored.path }));
  }
}

const archived = await capabilities.archiveDigest({ digests, since });
return { posted: !dryRun, archived: archived?.id ?? null, total: digests.reduce((sum, digest) => sum + digest.count, 0) };
