// Works off a queue of jobs with retries; each kind of job has its own way to be done.
enum Priority { Low, Normal, High }
type Job = { id: number; kind: "resize" | "convert" | "upload" | "notify"; payload: any; priority?: Priority };
type Outcome = { job: number; ok: boolean; detail: string };

class Backoff {
  private attempt = 0;
  constructor(private readonly base: number, private readonly limit: number) {}
  get exhausted(): boolean {
    return this.attempt >= this.limit;
  }
  next(): number {
    this.attempt += 1;
    return Math.min(this.base * 2 ** this.attempt, 60_000);
  }
}

class Worker {
  readonly outcomes: Outcome[] = [];
  #failures = 0;
  async run(job: Job): Promise<string> {
    switch (job.kind) {
      case "resize": {
        const image = await mcp.images.resize({ source: job.payload.source, width: job.payload.width ?? 800 });
        return image.url;
      }
      case "convert":
        return (await mcp.media.convert({ input: job.payload.input, format: job.payload.format })).output;
      case "upload":
      case "notify":
        await mcp.http.post({ url: args.endpoint, body: JSON.stringify(job.payload) });
        return job.kind === "upload" ? "stored" : "sent";
      default:
        throw new TypeError("unknown kind " + String(job.kind));
    }
  }
  async attempt(job: Job, backoff = new Backoff(args.delay, args.retries)): Promise<void> {
    try {
      this.outcomes.push({ job: job.id, ok: true, detail: await this.run(job) });
    } catch (error: unknown) {
      this.#failures++;
      if (backoff.exhausted || !(error instanceof Error)) {
        this.outcomes.push({ job: job.id, ok: false, detail: error instanceof Error ? error.message : `${error}` });
        return;
      }
      await mcp.time.sleep({ milliseconds: backoff.next() });
      return this.attempt(job, backoff);
    }
  }
  get failures() { return this.#failures; }
}

const worker = new Worker();
const jobs: Job[] = (await mcp.queue.take({ name: args.queue, count: args.count })).jobs;
jobs.sort((a, b) => (b.priority ?? Priority.Normal) - (a.priority ?? Priority.Normal));
for (const job of jobs) await worker.attempt(job);
return { done: worker.outcomes.filter(({ ok }) => ok).length, failures: worker.failures, outcomes: worker.outcomes };
