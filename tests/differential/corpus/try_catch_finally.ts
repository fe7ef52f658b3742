const log: string[] = [];
try {
  await mcp.fail.hard({ x: 1 });
  log.push("unreachable");
} catch (error: unknown) {
  log.push((error as Error).message);
  await mcp.log.write({ message: "failed" });
} finally {
  log.push((await mcp.log.flush({})).target);
}
try { log.push("fine") } catch { log.push("never") }
return log;
