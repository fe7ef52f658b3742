"""An MCP server of the 2026-07-28 era whose list of tools grows on request."""

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("growing")


@server.tool()
async def grow(name: str, ctx: Context) -> str:
    def leaf() -> str:
        return name

    server.add_tool(leaf, name=name)
    await ctx.notify_tools_changed()
    return "grown"


server.run("stdio")
