"""The Python SDK 2.x as a client, in the era that the second argument names: "legacy" or "auto"."""

import os
from contextlib import AsyncExitStack

import anyio
import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters

from scenario import run, target


class Peer:
    def __init__(self):
        self.client = None
        self.changed = anyio.Event()
        self.update = anyio.Event()
        self.updated = None

    async def heard(self, message):
        if isinstance(message, types.ToolListChangedNotification):
            self.changed.set()
        if isinstance(message, types.ResourceUpdatedNotification):
            self.hear_update(str(message.params.uri))

    def hear_update(self, uri):
        self.updated = uri
        self.update.set()

    async def listen_to_updates(self, subscription):
        async for event in subscription:
            self.hear_update(str(event.uri))

    async def listen(self, subscription):
        async for _ in subscription:
            self.changed.set()

    async def answer(self, context, params):
        """What the person says to every question."""
        return types.ElicitResult(action="accept", content={"name": "peer"})

    def protocol(self):
        return self.client.protocol_version

    async def list_tools(self):
        return (await self.client.list_tools()).model_dump(by_alias=True, mode="json")

    async def call_tool(self, name, args, on_progress=None):
        try:
            result = await self.client.call_tool(name, args, progress_callback=on_progress)
        except MCPError as error:
            return {"code": error.error.code, "message": error.error.message}
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)

    def next_change(self):
        self.changed = anyio.Event()
        return self.changed

    async def offer(self, method, *args):
        try:
            result = await getattr(self.client, method)(*args)
        except MCPError as error:
            return {"code": error.error.code, "message": error.error.message}
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)

    async def complete(self, prompt, argument):
        result = await self.client.complete(types.PromptReference(type="ref/prompt", name=prompt), argument)
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)

    async def next_update(self, uri):
        if self.era == "legacy":
            await self.client.subscribe_resource(uri)
        else:
            subscription = await self.stack.enter_async_context(self.client.listen(resource_subscriptions=[uri]))
            self.tasks.start_soon(self.listen_to_updates, subscription)
        return self.update

    async def call_and_cancel(self, name, waiting):
        answers = []

        async def call():
            answers.append(await self.call_tool(name, {}))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await waiting()
            tasks.cancel_scope.cancel()
        return not answers


async def main():
    url, command, era = target()
    peer = Peer()
    server = url or StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    async with AsyncExitStack() as stack:
        client = Client(server, mode=era, message_handler=peer.heard, elicitation_callback=peer.answer)
        peer.client = await stack.enter_async_context(client)
        tasks = await stack.enter_async_context(anyio.create_task_group())
        peer.era, peer.stack, peer.tasks = era, stack, tasks
        if era != "legacy":
            subscription = await stack.enter_async_context(peer.client.listen(tools_list_changed=True))
            tasks.start_soon(peer.listen, subscription)
        await run(peer)
        tasks.cancel_scope.cancel()


anyio.run(main)
