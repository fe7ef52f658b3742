const message = await mcp.fail.x({}).then(() => "no").catch((e: Error) => e.message);
const later = await (async () => { try { return await mcp.fail.y({}) } catch (e) { return (e as Error).message } })();
return [message, later];
