"""Carrying a channel over a websocket."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import ClientConnectionResetError, WSMessage, WSMsgType
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.sandbox.kubernetes.api.stream import carry, send_input

CLOSED = WSMessage(WSMsgType.CLOSED, None, None)


class FakeStream:
    """A websocket whose other end is the test."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.incoming: asyncio.Queue[WSMessage] = asyncio.Queue()
        self.taken = 0
        self.closed = False
        self.broken = False

    async def send_bytes(self, data: bytes) -> None:
        """Take a message."""
        if self.broken:
            raise ClientConnectionResetError
        self.sent.append(data)

    async def receive(self) -> WSMessage:
        """Give a message out."""
        self.taken += 1
        return await self.incoming.get()

    async def close(self) -> bool:
        """Note it."""
        self.closed = True
        return True

    def say(self, data: bytes, kind: WSMsgType = WSMsgType.BINARY) -> None:
        """Let a message come."""
        self.incoming.put_nowait(WSMessage(kind, data, None))


@asynccontextmanager
async def carried(
    stream: FakeStream,
) -> AsyncIterator[tuple[asyncio.Task[str], asyncio.StreamReader, asyncio.StreamWriter]]:
    """Carry between a websocket and a socket pair."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=ours)
    task = asyncio.create_task(carry(stream, theirs))
    try:
        yield task, reader, writer
    finally:
        writer.close()
        task.cancel()
        await asyncio.wait([task])
        theirs.close()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.binary(max_size=2000), max_size=12))
def test_output_arrives_whole_and_in_order(pieces: list[bytes]) -> None:
    """However it is cut, and whatever lies between: empty messages, text, other streams."""

    async def check() -> None:
        stream = FakeStream()
        for piece in pieces:
            stream.say(b"\x01" + piece)
            stream.say(b"")
            stream.say(b"\x02complaint")
            stream.say(b"\x01not binary", WSMsgType.TEXT)
        async with carried(stream) as (_, reader, _writer):
            whole = b"".join(pieces)
            assert await asyncio.wait_for(reader.readexactly(len(whole)), 5) == whole

    asyncio.run(check())


async def test_input_is_marked_as_such() -> None:
    """Every message begins with the number of standard input."""
    stream = FakeStream()
    async with carried(stream) as (task, _, writer):
        writer.write(b"x" * 200_000)
        writer.write_eof()
        assert await asyncio.wait_for(task, 5) == ""
    assert {message[0] for message in stream.sent} == {0}
    assert b"".join(message[1:] for message in stream.sent) == b"x" * 200_000
    assert max(map(len, stream.sent)) <= (1 << 16) + 1


async def test_large_input_goes_in_pieces() -> None:
    """No message is larger than servers take."""
    stream = FakeStream()
    await send_input(stream, b"y" * 150_000)
    assert [len(message) for message in stream.sent] == [65_537, 65_537, 18_929]


async def test_what_nobody_reads_is_not_taken() -> None:
    """The websocket is left alone once the socket is full: memory does not grow."""
    stream = FakeStream()
    for _ in range(400):
        stream.say(b"\x01" + b"z" * 32_768)
    async with carried(stream) as (_, reader, _writer):
        reader._transport.pause_reading()
        await asyncio.sleep(0.2)
        assert stream.taken < 100


async def test_the_end_of_the_websocket_ends_it_and_tells_the_complaint() -> None:
    """What the program printed as an error is returned, cut to what people read."""
    stream = FakeStream()
    stream.say(b"\x02cannot " + b"start" * 1000)
    stream.incoming.put_nowait(CLOSED)
    async with carried(stream) as (task, _, _writer):
        complaint = await asyncio.wait_for(task, 5)
    assert complaint.startswith("cannot start")
    assert len(complaint) <= 2000
    assert stream.closed


async def test_a_broken_websocket_is_an_end() -> None:
    """A send that fails raises nothing and leaves nothing running."""
    stream = FakeStream()
    stream.broken = True
    async with carried(stream) as (task, _, writer):
        writer.write(b"x")
        assert await asyncio.wait_for(task, 5) == ""
    assert stream.closed
