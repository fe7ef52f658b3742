"""An MCP server of the 2026-07-28 era that asks before it answers, and keeps what it knows in its requestState."""

import json

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.request_state import RequestStateSecurity
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

# The same key in every process: a question outlives the server that asked it.
server = MCPServer("asking", request_state_security=RequestStateSecurity(keys=["of the asking server, for tests only"]))
form = {"type": "object", "properties": {"name": {"type": "string"}}}


@server.tool()
async def greet(greeting: str, ctx: Context) -> str | InputRequiredResult:
    """Asks for a name, and then whether that is right."""
    state = json.loads(ctx.request_state or "{}")
    answers = ctx.input_responses or {}
    for step, question in [("name", "Who are you?"), ("sure", "Are you sure?")]:
        if step in state:
            continue
        if step not in answers:
            params = ElicitRequestFormParams(message=question, requested_schema=form)
            return InputRequiredResult(
                input_requests={step: ElicitRequest(params=params)}, request_state=json.dumps(state)
            )
        answer = answers[step]
        if answer.action != "accept":
            return f"{step}: {answer.action}"
        state[step] = answer.content["name"]
    return f"{greeting}, {state['name']} ({state['sure']})"


@server.tool()
async def offered(ctx: Context) -> list[str]:
    """What the client of this call has."""
    offers = ctx.client_capabilities.model_dump(exclude_none=True) if ctx.client_capabilities else {}
    return sorted(offers)


server.run("stdio")
