"""An MCP server of the 2026-07-28 era with resources and prompts, some of which ask before they answer."""

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resources import TextResource
from mcp_types import Completion, ElicitRequest, ElicitRequestFormParams, InputRequiredResult

server = MCPServer("shelf")
form = {"type": "object", "properties": {"name": {"type": "string"}}}


def reader(ctx):
    """Who reads, if that is known already."""
    answer = (ctx.input_responses or {}).get("who")
    return answer and (answer.content["name"] if answer.action == "accept" else answer.action)


def question():
    params = ElicitRequestFormParams(message="Who reads?", requested_schema=form)
    return InputRequiredResult(input_requests={"who": ElicitRequest(params=params)}, request_state="asked")


@server.resource("shelf://book/one", name="one")
def one() -> str:
    return "newer: shelf://book/one"


@server.resource("shelf://asking/{topic}")
async def asking(topic: str, ctx: Context) -> str | InputRequiredResult:
    return f"{topic} for {reader(ctx)}" if reader(ctx) else question()


@server.prompt()
async def ask(ctx: Context) -> str | InputRequiredResult:
    return f"newer for {reader(ctx)}" if reader(ctx) else question()


@server.prompt()
def summary(length: str) -> str:
    return f"newer: summary {length}"


@server.completion()
async def complete(ref, argument, context):
    return Completion(values=["newer", argument.value])


@server.tool()
async def put(name: str, ctx: Context) -> str:
    server.add_resource(TextResource(uri=f"shelf://book/{name}", name=name, text=name))
    await ctx.notify_resources_changed()
    return "put"


@server.tool()
async def write(name: str, ctx: Context) -> str:
    def written() -> str:
        return name

    server.prompt(name=name)(written)
    await ctx.notify_prompts_changed()
    return "written"


@server.tool()
async def update(uri: str, ctx: Context) -> str:
    await ctx.notify_resource_updated(uri)
    return "updated"


server.run("stdio")
