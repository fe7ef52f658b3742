const x: string = "bom";
return (await mcp.b.om({ x })).content;
