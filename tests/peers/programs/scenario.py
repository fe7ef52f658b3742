"""What every Python client does with the proxy; what it saw is printed as JSON for the test to judge."""

import json
import os
import sys
from pathlib import Path

import anyio


def target():
    where = sys.argv[1]
    era = sys.argv[2] if len(sys.argv) > 2 else None
    if where.startswith("http"):
        return where, None, era
    return None, json.loads(where), era


async def journal_says(line):
    """The downstream server notes when the call has reached it."""
    journal = Path(os.environ["PEER_JOURNAL"])
    while not (journal.exists() and line in journal.read_text()):
        await anyio.sleep(0.02)


async def run(client):
    """`client` wraps an SDK: list_tools, call_tool(name, args, on_progress), next_change, offer(method, *args), next_update,
    call_and_cancel."""

    async def names():
        return [tool["name"] for tool in (await client.list_tools())["tools"]]

    seen = {"protocol": client.protocol(), "tools": await names()}
    changed = client.next_change()
    code = "return { doubled: args.n * 2 };"
    seen["executed"] = await client.call_tool("pml_execute", {"code": code, "name": "peer:double", "args": {"n": 21}})
    with anyio.move_on_after(60):
        await changed.wait()
    seen["changed"] = changed.is_set()
    seen["toolsAfter"] = await names()
    seen["called"] = await client.call_tool("mcp__peer__double", {"n": 4})
    seen["byName"] = await client.call_tool("pml_execute", {"capability": "peer:double", "args": {"n": 5}})
    seen["failed"] = await client.call_tool("pml_execute", {"code": "throw new Error('no good')"})
    seen["unknownTool"] = await client.call_tool("no_such_tool", {})

    seen["progress"] = []

    async def on_progress(progress, total, message):
        seen["progress"].append(progress)

    long = "mcp__everything__trigger-long-running-operation"
    seen["long"] = await client.call_tool(long, {"duration": 1, "steps": 4}, on_progress)
    # A server that starts slowly is missing in the first list.
    while "mcp__asking__greet" not in await names():
        await anyio.sleep(0.02)
    seen["asked"] = await client.call_tool("mcp__asking__greet", {"greeting": "Hello"})

    one = "pml://shelf/shelf://book/one"
    seen["resources"] = []
    while one not in seen["resources"]:
        listed = await client.offer("list_resources")
        seen["resources"] = [resource["uri"] for resource in listed["resources"]]
    templates = await client.offer("list_resource_templates")
    seen["templates"] = [template["uriTemplate"] for template in templates["resourceTemplates"]]
    seen["read"] = await client.offer("read_resource", "pml://shelf/shelf://page/7?as=a%2Fb")
    seen["noResource"] = await client.offer("read_resource", "pml://shelf/shelf://none")
    seen["prompts"] = [prompt["name"] for prompt in (await client.offer("list_prompts"))["prompts"]]
    seen["got"] = await client.offer("get_prompt", "mcp__shelf__ask")
    seen["completed"] = await client.complete("mcp__shelf__summary", {"name": "length", "value": "sh"})
    update = await client.next_update(one)
    await client.call_tool("mcp__shelf__update", {"uri": "shelf://book/one"})
    with anyio.move_on_after(60):
        await update.wait()
        seen["updated"] = client.updated

    with anyio.move_on_after(60):
        seen["cancelled"] = await client.call_and_cancel("mcp__moody__cancellable", lambda: journal_says("waiting"))
    # Before the client goes away, which would end the call too.
    with anyio.move_on_after(60):
        await journal_says("cancelled")
        seen["serverKnows"] = True
    print(json.dumps(seen))
