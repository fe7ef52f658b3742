"""The tools and prompts of the conformance suite that ask back, at a server of the 2026-07-28 era behind the proxy."""

from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
)

MISSING_REQUIRED_CLIENT_CAPABILITY = -32021
server = MCPServer("conformance")


def ask(message, **fields):
    properties = {name: {"type": kind} for name, kind in fields.items()}
    schema = {"type": "object", "properties": properties, "required": list(fields)}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sample(text):
    message = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=100))


name = {"user_name": ask("What is your name?", name="string")}
confirm = {"confirm": ask("Please confirm", ok="boolean")}
roots = {"client_roots": ListRootsRequest()}
# For each tool, what it asks in each round.
rounds = {
    "elicitation": [name],
    "sampling": [{"capital_question": sample("What is the capital of France?")}],
    "list_roots": [roots],
    "request_state": [confirm],
    "multiple_inputs": [{**name, "greeting": sample("Generate a greeting"), **roots}],
    "multi_round": [
        {"step1": ask("Step 1: What is your name?", name="string")},
        {"step2": ask("Step 2: What is your favorite color?", color="string")},
    ],
    "tampered_state": [confirm],
    "capabilities": [{**name, "greeting": sample("Generate a greeting")}],
}
needs = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}


def tool(questions):
    async def answer(ctx: Context) -> str | InputRequiredResult:
        done = int(ctx.request_state or 0)
        answers = ctx.input_responses or {}
        offered = lambda request: getattr(ctx.client_capabilities, needs[request.method], None) is not None
        wanted = {key: request for key, request in questions[done].items() if offered(request)}
        if all(key in answers for key in wanted):
            done += 1
            if done == len(questions):
                return f"state-ok: {answers}"
            wanted = questions[done]
        return InputRequiredResult(input_requests=wanted, request_state=str(done))

    return answer


for kind, questions in rounds.items():
    server.add_tool(tool(questions), name=f"test_input_required_result_{kind}", description="Asks back")


@server.tool()
async def test_missing_capability(ctx: Context) -> str:
    """Needs sampling."""
    if ctx.client_capabilities is None or ctx.client_capabilities.sampling is None:
        data = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "This tool needs sampling", data)
    return "sampling is there"


@server.prompt()
async def test_input_required_result_prompt(ctx: Context) -> str | InputRequiredResult:
    """Asks for a context."""
    answers = ctx.input_responses or {}
    if "user_context" not in answers:
        question = ask("What context should the prompt use?", context="string")
        return InputRequiredResult(input_requests={"user_context": question})
    return f"Use this context: {answers['user_context']}"


server.run("stdio")
