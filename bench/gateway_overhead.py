"""What does the gateway add to a model call, in time and in load.

A fixed answer is asked for directly, through a bare pass-through on the same stack, through the
gateway with everything on (key, tool rule, session caps, decision, durable receipts), and through
the peers that are installed. All are on loopback, each in a process of its own; the upstream
itself takes no time.
"""

import asyncio
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

import aiohttp
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from frame import Batch, Figures, Options, interleave, parse_options, percentile, report
from peers import Target, litellm, portkey
from turnout.core.clock import SystemClock
from turnout.core.ids import DeploymentId, ModelId, ProviderName
from turnout.core.money import Micros, Price
from turnout.core.policies import Policy, SessionCaps, ToolRule
from turnout.gateway.access import shared_key
from turnout.gateway.app import build_app
from turnout.gateway.catalog import Catalog, Deployment, Provider
from turnout.gateway.engine import Engine, EngineStores
from turnout.gateway.measure.live import LiveEvidence
from turnout.gateway.providers.openai_compatible import OpenAICompatible
from turnout.gateway.server import serve
from turnout.store.affinity import AffinityStore
from turnout.store.database import open_database
from turnout.store.dialects import Durability
from turnout.store.receipts import ReceiptsStore
from turnout.store.sessions import SessionLedgerStore

KEY = "bench-key"
PATH = "/v1/chat/completions"
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
WIDTH = 32

Role = Callable[[int, Connection], Coroutine[Any, Any, None]]


class FixedAnswer(asyncio.Protocol):
    """An upstream that answers as soon as a request is complete."""

    _body = json.dumps(ANSWERED).encode()
    _answer = (
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
    ) % (len(_body), _body)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection."""
        self._transport = cast("asyncio.WriteTransport", transport)
        self._seen = b""

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
            self._transport.write(self._answer)


async def upstream(_: int, ready: Connection) -> None:
    """Serve the fixed answer."""
    server = await asyncio.get_running_loop().create_server(FixedAnswer, "127.0.0.1", 0)
    ready.send(server.sockets[0].getsockname()[1])
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
            ready.send(bound.port)
            await asyncio.Event().wait()


async def gateway(port: int, ready: Connection) -> None:
    """Serve with everything on."""
    await _serve_gateway(port, ready, "full")


async def gateway_unsynced(port: int, ready: Connection) -> None:
    """Serve with everything on, without waiting for the disk."""
    await _serve_gateway(port, ready, "normal")


async def _serve_gateway(port: int, ready: Connection, durability: Durability) -> None:
    provider = Provider(ProviderName("local"), f"http://127.0.0.1:{port}/v1")
    deployments = tuple(
        Deployment(
            id=DeploymentId(f"local/{name}"),
            model=ModelId(name),
            provider=provider.name,
            upstream_name=name,
            price=Price(input=270_000, output=1_100_000),
            tools="confirmed",
        )
        for name in ("m", "n", "o")
    )
    policy = Policy(
        tools=ToolRule("enforce", TOOL_NAMES),
        session=SessionCaps(max_requests=10**9, max_spend=Micros(10**15)),
    )
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        database = await stack.enter_async_context(
            open_database(Path(folder) / "bench.db", durability=durability)
        )
        engine = Engine(
            policy=policy,
            catalog=Catalog({provider.name: provider}, deployments),
            upstream=await stack.enter_async_context(OpenAICompatible(clock)),
            evidence=LiveEvidence(clock),
            stores=EngineStores(
                ReceiptsStore(database), SessionLedgerStore(database), AffinityStore(database)
            ),
            clock=clock,
        )
        app = build_app(engine, shared_key(KEY))
        bound = await stack.enter_async_context(serve(app, host="127.0.0.1"))
        ready.send(bound.port)
        await asyncio.Event().wait()


def _play(role: Role, port: int, ready: Connection) -> None:
    uvloop.run(role(port, ready))


@asynccontextmanager
async def _process(role: Role, port: int = 0) -> AsyncIterator[int]:
    """Run a role in a process of its own and yield its port."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_play, args=(role, port, theirs), daemon=True)
    process.start()
    try:
        yield await asyncio.to_thread(ours.recv)
    finally:
        process.terminate()
        process.join(10)


class Caller:
    """One connection on which requests are made, with as little of its own as can be."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: Target
    ) -> None:
        self._reader = reader
        self._writer = writer
        body = json.dumps(target.body).encode()
        headers = {
            "host": f"127.0.0.1:{target.port}",
            "content-type": "application/json",
            "content-length": str(len(body)),
            **target.headers,
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._request = f"POST {PATH} HTTP/1.1\r\n{lines}\r\n".encode() + body

    @classmethod
    @asynccontextmanager
    async def connected(cls, target: Target) -> AsyncIterator["Caller"]:
        """Connect to a target for one batch: idle connections are closed by some."""
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
        try:
            yield cls(reader, writer, target)
        finally:
            writer.close()
            await writer.wait_closed()

    async def call(self) -> float:
        """Make one request and return its milliseconds."""
        began = time.perf_counter()
        self._writer.write(self._request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        assert head.startswith(b"http/1.1 200"), head
        _, declared, rest = head.partition(b"content-length:")
        if declared:
            await self._reader.readexactly(int(rest.partition(b"\r\n")[0]))
        else:
            await self._reader.readuntil(b"\r\n0\r\n\r\n")
        return (time.perf_counter() - began) * 1000


def _latency(target: Target, times: int) -> Batch:
    async def batch() -> Sequence[float]:
        async with Caller.connected(target) as caller:
            await caller.call()
            return [await caller.call() for _ in range(times)]

    return batch


def _throughput(target: Target, each: int) -> Batch:
    """Return a batch whose one sample is the milliseconds per request under full load."""

    async def many(caller: Caller) -> None:
        for _ in range(each):
            await caller.call()

    async def batch() -> Sequence[float]:
        async with AsyncExitStack() as stack:
            callers = [
                await stack.enter_async_context(Caller.connected(target)) for _ in range(WIDTH)
            ]
            began = time.perf_counter()
            await asyncio.gather(*map(many, callers))
            return [(time.perf_counter() - began) * 1000 / (each * WIDTH)]

    return batch


async def _measure(targets: Mapping[str, Target], options: Options) -> Mapping[str, Figures]:
    times, each = options.pick(full=40, quick=15), options.pick(full=8, quick=2)
    alone = await interleave(
        {name: _latency(target, times) for name, target in targets.items()},
        rounds=options.pick(full=30, quick=6),
    )
    loaded = await interleave(
        {name: _throughput(target, each) for name, target in targets.items()},
        rounds=options.pick(full=7, quick=3),
    )

    def added(name: str, share: float) -> float:
        theirs, base = percentile(alone[name], share), percentile(alone["direct"], share)
        return round(theirs - base, 3)

    return {
        name: {
            "added_p50_ms": added(name, 0.5),
            "added_p99_ms": added(name, 0.99),
            "requests_per_s": round(1000 / percentile(loaded[name], 0.5)),
        }
        for name in targets
    }


def _disk_sync_ms() -> float:
    """Return how long this disk takes to make a page durable: each receipt waits for that."""
    samples = []
    with tempfile.TemporaryFile(buffering=0) as file:
        for _ in range(50):
            began = time.perf_counter()
            file.write(bytes(4096))
            os.fdatasync(file.fileno())
            samples.append((time.perf_counter() - began) * 1000)
    return round(percentile([samples], 0.5), 3)


async def main() -> None:
    """Start everybody, measure in turns, report."""
    options = parse_options(__doc__ or "")
    ours = {"authorization": f"Bearer {KEY}"}
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        port = await enter(_process(upstream))
        found: dict[str, Target | None] = {
            "direct": Target(port, PLAIN),
            "gateway": Target(await enter(_process(gateway, port)), ROUTED, ours),
            "unsynced": Target(await enter(_process(gateway_unsynced, port)), ROUTED, ours),
            "pass_through": Target(await enter(_process(pass_through, port)), PLAIN),
            "litellm": await enter(litellm(port, PLAIN, KEY)),
            "portkey": await enter(portkey(port, PLAIN)),
        }
        targets = {name: target for name, target in found.items() if target is not None}
        figures = await _measure(targets, options)
    unsynced = figures["unsynced"]
    report(
        "gateway_overhead",
        options,
        figures["gateway"],
        peers={name: figures.get(name) for name in ("pass_through", "litellm", "portkey")},
        facts={
            "callers_under_load": WIDTH,
            "direct_requests_per_s": figures["direct"]["requests_per_s"],
            "disk_sync_p50_ms": _disk_sync_ms(),
            "without_sync_added_p50_ms": unsynced["added_p50_ms"],
            "without_sync_requests_per_s": unsynced["requests_per_s"],
        },
    )


if __name__ == "__main__":
    uvloop.run(main())
