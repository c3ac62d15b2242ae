"""Clients cannot make a connection keep what they send, or wait for them, without end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.server import ServerState

from turnout.gateway.connection import BoundedConnection

HEAD = b"POST / HTTP/1.1\r\nhost: gateway\r\n"
MUCH = 4 * 2**20
"""Bytes that are many times what a head may have."""
START: dict[str, Any] = {"type": "http.response.start", "status": 200, "headers": []}


class Watched(BoundedConnection):
    """Says when it is gone."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell, whatever the reason."""
        super().connection_lost(exc)
        self.app_state["gone"].set()


class Quick(Watched):
    """Loses its patience at once."""

    longest_wait = 0.1
    longest_unread = 0.1


async def reads_all(_: Scope, receive: Receive, send: Send) -> None:
    """Answer once the body is there."""
    while (await receive()).get("more_body"):
        pass
    await send({**START, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def reads_nothing(_: Scope, _receive: Receive, send: Send) -> None:
    """Answer before the body is there."""
    await send({**START, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"no"})


async def says_much(_: Scope, _receive: Receive, send: Send) -> None:
    """Send far more than the machine keeps for a client that does not read."""
    await send(START)
    for _part in range(400):
        await send({"type": "http.response.body", "body": b"x" * 2**18, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


@asynccontextmanager
async def connected(
    app: ASGIApp, kind: type[Watched] = Watched
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter, asyncio.Event]]:
    """Connect to a server of that app; the event comes once the server has let go."""
    state, gone = ServerState(), asyncio.Event()
    config = uvicorn.Config(app, lifespan="off", log_config=None, access_log=False)
    config.load()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: kind(config, state, {"gone": gone}), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    try:
        yield reader, writer, gone
    finally:
        writer.close()
        server.close()
        async with asyncio.timeout(5):
            await gone.wait()


async def answer(reader: asyncio.StreamReader) -> bytes:
    """Return all that comes until the other side ends the connection."""
    said = b""
    async with asyncio.timeout(5):
        try:
            while part := await reader.read(2**16):
                said += part
        except ConnectionError:
            pass
    return said


@pytest.mark.parametrize(
    ("start", "more"),
    [
        (HEAD, b"x-one: %s\r\n" % (b"a" * 1_000)),
        (HEAD + b"x-one: ", b"a" * 1_000),
        (b"GET /", b"a" * 1_000),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n0\r\n", b"x-one: %s\r\n" % (b"a" * 1_000)),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n1;", b"a" * 1_000),
    ],
    ids=["headers", "one header", "a path", "trailers", "an extension"],
)
async def test_what_never_becomes_a_body_is_cut_off(start: bytes, more: bytes) -> None:
    """Nothing keeps megabytes of what nobody has asked for, and no key is needed to send it."""
    async with connected(reads_all) as (_, writer, gone):
        writer.write(start)
        with suppress(ConnectionError):
            for _ in range(MUCH // len(more)):
                writer.write(more)
                await writer.drain()
        async with asyncio.timeout(5):
            await gone.wait()


async def test_a_long_body_after_a_short_head_is_taken() -> None:
    """The bound is for heads alone."""
    async with connected(reads_all) as (reader, writer, _):
        writer.write(HEAD + b"connection: close\r\ncontent-length: %d\r\n\r\n" % MUCH + b"a" * MUCH)
        assert (await answer(reader)).endswith(b"\r\n\r\nok")


async def test_requests_one_after_the_other_are_all_answered() -> None:
    """Each has a head of its own, however many come at once."""
    one = HEAD + b"x-long: %s\r\ncontent-length: 1\r\n\r\n." % (b"a" * 2_000)
    last = HEAD + b"connection: close\r\ncontent-length: 0\r\n\r\n"
    async with connected(reads_all) as (reader, writer, _):
        writer.write(one * 99 + last)
        assert (await answer(reader)).count(b"\r\n\r\nok") == 100


@pytest.mark.parametrize(
    "start", [b"", b"POST", HEAD, HEAD + b"content-length: 2\r\n\r\n"], ids=repr
)
async def test_who_does_not_finish_a_request_is_not_waited_for(start: bytes) -> None:
    """Neither before its head is there, nor after it was answered without its body."""
    async with connected(reads_nothing, Quick) as (reader, writer, _):
        writer.write(start)
        said = await answer(reader)
    assert said.endswith(b"no") == start.endswith(b"\r\n\r\n")


async def test_who_does_not_read_is_not_waited_for() -> None:
    """What was written for that client is let go."""
    async with connected(says_much, Quick) as (_, writer, gone):
        writer.write(HEAD + b"content-length: 0\r\n\r\n")
        async with asyncio.timeout(5):
            await gone.wait()
