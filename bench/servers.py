"""Who is measured: a fixed upstream, a bare pass-through, and the gateway, each a process."""

import asyncio
import json
import multiprocessing
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, cast

import aiohttp
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from children import end_with_parent
from turnout.core.clock import SystemClock
from turnout.core.govern.keys import KeyEntry, KeyLimits, KeyRecord
from turnout.gateway.keys.ring import digest_of
from turnout.gateway.server import serve
from turnout.settings import load_settings
from turnout.store.database import open_database
from turnout.store.keys import KeysStore
from turnout.wiring.serving.gateway import open_gateway

__all__ = [
    "BEAT",
    "KEY",
    "PATH",
    "PLAIN",
    "ROUTED",
    "STREAMED",
    "Place",
    "gateway",
    "pass_through",
    "process",
    "upstream",
]

KEY = "tk-bench"
PATH = "/v1/chat/completions"
BEAT, BEATS = 1.0, 8
"""Seconds between the events of a stream, and how many there are."""
TOOL_NAMES = ("list_files", "read_file", "run_tests", "apply_patch")
TOOLS = [
    {
        "type": "function",
        "function": {"name": name, "parameters": {"type": "object", "properties": {}}},
    }
    for name in TOOL_NAMES
]
PLAIN = {
    "model": "m",
    "messages": [{"role": "user", "content": "Which file holds the parser? " * 20}],
    "tools": TOOLS,
}
ROUTED = {
    **PLAIN,
    "model": "auto",
    "routing": {"optimize": "latency", "task": "coding", "session": "bench"},
}
STREAMED = {**ROUTED, "stream": True}
ANSWERED = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "src/parser.py"},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 200, "completion_tokens": 5, "total_tokens": 205},
}

CONFIG = """
[providers.local]
base_url = "http://127.0.0.1:{port}/v1"

[policy.tools]
mode = "enforce"
allow = {tools}

[policy.session]
max_requests = 1000000000
max_spend_usd = "1000000"
""" + "".join(
    f"""
[[deployments]]
model = "{name}"
provider = "local"
tools = "confirmed"
[deployments.price]
input_usd = "0.27"
output_usd = "1.10"
"""
    for name in ("m", "n", "o")
)

Role = Callable[[int, Connection], Coroutine[Any, Any, None]]


class Place(NamedTuple):
    """Where somebody serves."""

    port: int
    pid: int


class FixedAnswer(asyncio.Protocol):
    """An upstream that answers as soon as a request is complete, slowly where it is a stream."""

    _body = json.dumps(ANSWERED).encode()
    _answer = (
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
    ) % (len(_body), _body)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection."""
        self._transport = cast("asyncio.WriteTransport", transport)
        self._seen = b""
        self._streaming: asyncio.Task[None] | None = None

    def connection_lost(self, _: Exception | None) -> None:
        """Say no more."""
        if self._streaming is not None:
            self._streaming.cancel()

    def data_received(self, data: bytes) -> None:
        """Answer once the declared length has come."""
        self._seen += data
        head, found, body = self._seen.partition(b"\r\n\r\n")
        if not found:
            return
        declared = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        length = int(declared or 0)
        if len(body) >= length:
            self._seen = body[length:]
            if b'"stream":true' in body[:length].replace(b" ", b""):
                self._streaming = asyncio.create_task(self._stream())
            else:
                self._transport.write(self._answer)

    async def _stream(self) -> None:
        head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked"
        self._transport.write(head.encode() + b"\r\n\r\n")
        for number in range(BEATS):
            await asyncio.sleep(BEAT)
            self._say(_chunk({"content": f"word {number} "}, None))
        self._say(_chunk({}, "stop"))
        self._say({**_chunk({}, None), "choices": [], "usage": ANSWERED["usage"]})
        self._send(b"data: [DONE]\n\n")
        self._transport.write(b"0\r\n\r\n")

    def _say(self, chunk: dict[str, Any]) -> None:
        self._send(b"data: " + json.dumps(chunk).encode() + b"\n\n")

    def _send(self, event: bytes) -> None:
        self._transport.write(b"%x\r\n%b\r\n" % (len(event), event))


def _chunk(delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    begin = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**begin, "choices": [choice]}


async def upstream(_: int, ready: Connection) -> None:
    """Serve the fixed answer."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(FixedAnswer, "127.0.0.1", 0, backlog=1_024)
    ready.send(Place(server.sockets[0].getsockname()[1], os.getpid()))
    await server.serve_forever()


async def pass_through(port: int, ready: Connection) -> None:
    """Serve by handing bytes on, and nothing else."""
    url = f"http://127.0.0.1:{port}{PATH}"
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def hand_on(request: Request) -> Response:
            async with session.post(url, data=await request.body()) as answer:
                return Response(await answer.read(), answer.status, media_type="application/json")

        app = Starlette(routes=[Route(PATH, hand_on, methods=["POST"])])
        async with serve(app, host="127.0.0.1") as bound:
            ready.send(Place(bound.port or 0, os.getpid()))
            await asyncio.Event().wait()


async def gateway(port: int, ready: Connection) -> None:
    """Serve as `turnout gateway` does, with everything on."""
    async with AsyncExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        config = home / "turnout.toml"
        config.write_text(CONFIG.format(port=port, tools=json.dumps(TOOL_NAMES)), "utf-8")
        settings = load_settings(config=config, environment={"TURNOUT_HOME": str(home)})
        async with open_database(home / "turnout.db") as database:
            now = SystemClock().now()
            record = KeyRecord("bench", "bench", ("default",), KeyLimits(10**9, 10**6), now, "")
            await KeysStore(database).add(KeyEntry(digest_of(KEY), record))
        opened = await stack.enter_async_context(
            open_gateway(settings, host="127.0.0.1", port=0, key="", report=lambda _: None)
        )
        ready.send(Place(int(opened.base_url.rpartition(":")[2]), os.getpid()))
        await asyncio.Event().wait()


def _play(role: Role, port: int, ready: Connection) -> None:
    end_with_parent()
    uvloop.run(role(port, ready))


@asynccontextmanager
async def process(role: Role, port: int = 0) -> AsyncIterator[Place]:
    """Run a role in a process of its own and yield where it serves."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    running = context.Process(target=_play, args=(role, port, theirs), daemon=True)
    running.start()
    theirs.close()
    try:
        yield await asyncio.to_thread(ours.recv)
    finally:
        running.terminate()
        running.join(10)
