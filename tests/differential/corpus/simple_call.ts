const file = await mcp.fs.read({ path: "a.txt" });
return file.content;
