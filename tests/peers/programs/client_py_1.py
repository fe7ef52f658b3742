"""The Python SDK 1.x as a client."""

import os
from contextlib import AsyncExitStack

import anyio
import mcp.types as types
from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl

from scenario import run, target


class Peer:
    def __init__(self):
        self.session = None
        self.changed = anyio.Event()
        self.update = anyio.Event()
        self.updated = None

    async def heard(self, message):
        if not isinstance(message, types.ServerNotification):
            return
        if isinstance(message.root, types.ToolListChangedNotification):
            self.changed.set()
        if isinstance(message.root, types.ResourceUpdatedNotification):
            self.updated = str(message.root.params.uri)
            self.update.set()

    async def answer(self, context, params):
        """What the person says to every question."""
        return types.ElicitResult(action="accept", content={"name": "peer"})

    def protocol(self):
        return self.version

    async def list_tools(self):
        return (await self.session.list_tools()).model_dump(by_alias=True, mode="json")

    async def call_tool(self, name, args, on_progress=None):
        try:
            result = await self.session.call_tool(name, args, progress_callback=on_progress)
        except McpError as error:
            return {"code": error.error.code, "message": error.error.message}
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)

    def next_change(self):
        self.changed = anyio.Event()
        return self.changed

    async def offer(self, method, *args):
        try:
            # This SDK wants URIs parsed.
            args = [AnyUrl(arg) if "://" in arg else arg for arg in args]
            result = await getattr(self.session, method)(*args)
        except McpError as error:
            return {"code": error.error.code, "message": error.error.message}
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)

    async def complete(self, prompt, argument):
        result = await self.session.complete(types.PromptReference(type="ref/prompt", name=prompt), argument)
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)

    async def next_update(self, uri):
        await self.session.subscribe_resource(AnyUrl(uri))
        return self.update

    async def call_and_cancel(self, name, waiting):
        answers = []

        async def call():
            answers.append(await self.call_tool(name, {}))

        # This SDK has no public way to cancel: the request's number is the next one it gives.
        request = self.session._request_id
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await waiting()
            params = types.CancelledNotificationParams(requestId=request, reason="changed my mind")
            notification = types.CancelledNotification(method="notifications/cancelled", params=params)
            await self.session.send_notification(types.ClientNotification(notification))
            tasks.cancel_scope.cancel()
        return not answers


async def main():
    url, command, _ = target()
    peer = Peer()
    async with AsyncExitStack() as stack:
        if url:
            read, write, _ = await stack.enter_async_context(streamable_http_client(url))
        else:
            parameters = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
            read, write = await stack.enter_async_context(stdio_client(parameters))
        peer.session = await stack.enter_async_context(ClientSession(read, write, message_handler=peer.heard, elicitation_callback=peer.answer))
        peer.version = (await peer.session.initialize()).protocolVersion
        await run(peer)


anyio.run(main)
