"""An agent that was taken over from within: whatever it sends, callers get an end and no more.

Single violations of the agreement are tested where the channel is; here an agent lies at length.
"""

import asyncio
import math
import resource
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.core.ids import RunId
from turnout.errors import SandboxDiedError, ToolError
from turnout.sandbox.base import Command, Exit, Limits
from turnout.sandbox.channel import Channel
from turnout.sandbox.inside import wire
from turnout.sandbox.resident_sandbox import Fittings, ResidentSandbox

pytestmark = pytest.mark.abuse

RUN = RunId("run-00000000f1a3")
KINDS = st.sampled_from(range(32))
FRAME = st.builds(
    lambda kind, call, data: wire.HEADER.pack(len(data) + 5, kind, call) + data,
    KINDS,
    st.integers(0, 3),
    st.binary(max_size=120),
)
ENDS = st.builds(
    lambda fields, text: (
        wire.HEADER.pack(wire.DONE.size + len(text) + 5, wire.DONE_FRAME, 1)
        + wire.DONE.pack(*fields)
        + text
    ),
    st.tuples(
        *(
            {
                "B": st.integers(0, 255),
                "i": st.integers(-(1 << 31), (1 << 31) - 1),
                "d": st.floats(),
                "Q": st.integers(0, (1 << 64) - 1),
            }[letter]
            for letter in wire.DONE.format.strip("<>=!@")
        )
    ),
    st.binary(max_size=40),
)
Answer = Callable[[int, int, bytes], bytes]
"""Takes kind, id and payload of a frame and returns what is sent back."""


def frame(kind: int, call_id: int, payload: bytes = b"") -> bytes:
    """Return a frame."""
    return wire.HEADER.pack(len(payload) + 5, kind, call_id) + payload


@asynccontextmanager
async def facing(answer: Answer) -> AsyncIterator[ResidentSandbox]:
    """Yield a sandbox whose agent answers every frame as it is told."""
    ours, theirs = socket.socketpair()
    channel = await Channel.over(ours, lambda: None)
    reader, writer = await asyncio.open_connection(sock=theirs)

    async def lie() -> None:
        with suppress(asyncio.IncompleteReadError, OSError):
            while True:
                length, kind, call_id = wire.HEADER.unpack(
                    await reader.readexactly(wire.HEADER.size)
                )
                writer.write(answer(kind, call_id, await reader.readexactly(length - 5)))

    writer.write(frame(wire.HELLO, 0))
    lying = asyncio.create_task(lie())
    try:
        await channel.wait_ready(5)
        yield ResidentSandbox(Fittings(RUN, "none", ("find",), Limits()), channel)
    finally:
        channel.end("the test is over")
        await channel.closed()
        writer.close()
        lying.cancel()
        await asyncio.wait([lying])


async def receive(stream: bytes) -> Exit | None:
    """Run a command whose agent sends a stream and hangs up; None where that ended the sandbox."""
    ours, theirs = socket.socketpair()
    channel = await Channel.over(ours, lambda: None)
    _, writer = await asyncio.open_connection(sock=theirs)
    ended = None
    try:
        async with asyncio.timeout(5):
            with suppress(SandboxDiedError):
                running = channel.exec(Command(("true",), head=100, tail=100))
                pending = asyncio.ensure_future(anext(running))
                await asyncio.sleep(0)
                writer.write(frame(wire.HELLO, 0) + stream)
                writer.close()
                item = await pending
                while not isinstance(item, Exit):
                    item = await anext(running)
                ended = item
                await running.aclose()
    finally:
        channel.end("the test is over")
        await channel.closed()
    return ended


@settings(max_examples=150, deadline=None)
@given(st.lists(FRAME | ENDS | st.binary(max_size=40), max_size=20))
def test_any_stream_of_an_agent_comes_to_an_end(pieces: list[bytes]) -> None:
    """Never an error of ours, never a wait; what is taken for an end has numbers that are some."""
    ended = asyncio.run(receive(b"".join(pieces)))
    if ended is not None:
        assert 0 <= ended.wall_seconds < math.inf
        assert ended.code is None or 0 <= ended.code <= 255
        assert ended.signal is None or 0 < ended.signal < 128
        assert ended.cpu_seconds is None or 0 <= ended.cpu_seconds < math.inf


async def test_frames_that_nobody_asked_for_cost_no_memory() -> None:
    """Hundreds of megabytes of them are dropped as they come."""
    junk = frame(wire.STDOUT, 4_000_000, bytes(1 << 20)) * 8

    def answer(kind: int, call_id: int, payload: bytes) -> bytes:
        return junk + frame(wire.DONE_FRAME, call_id, bytes(wire.DONE.size))

    async with facing(answer) as sandbox:
        assert (await sandbox.run(Command(("true",)))).ok
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(40):
            assert (await sandbox.run(Command(("true",)))).ok
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 64 << 10


async def test_a_file_that_never_ends_is_given_up() -> None:
    """One that claims gigabytes and comes byte by byte is an error in time, not a wait."""

    def answer(kind: int, call_id: int, payload: bytes) -> bytes:
        return frame(wire.REPLY, call_id, wire.READ.pack((8 << 30) - 1, 0o644) + b"x")

    async with facing(answer) as sandbox, asyncio.timeout(10):
        with pytest.raises((SandboxDiedError, ToolError)):
            await sandbox.read("file")


async def test_a_file_is_never_more_than_was_asked_for() -> None:
    """An answer that is longer than the limit is cut or refused."""

    def answer(kind: int, call_id: int, payload: bytes) -> bytes:
        return frame(wire.REPLY, call_id, wire.READ.pack(10, 0o107777) + bytes(5_000_000))

    async with facing(answer) as sandbox:
        with suppress(SandboxDiedError, ToolError):
            blob = await sandbox.read("file", limit=1000)
            assert len(blob.data) <= 1000
            assert blob.mode <= 0o777


async def test_a_refusal_is_not_longer_than_anybody_reads() -> None:
    """A text of megabytes in the place of a reason does not become one."""

    def answer(kind: int, call_id: int, payload: bytes) -> bytes:
        return frame(wire.REFUSED, call_id, b"\xff" * 8_000_000)

    async with facing(answer) as sandbox:
        with pytest.raises((SandboxDiedError, ToolError)) as caught:
            await sandbox.read("file")
        assert len(str(caught.value)) < 100_000


async def test_a_command_that_was_not_started_gives_a_short_reason() -> None:
    """The same at the end of a command."""
    head = struct.pack(">B", wire.NOT_STARTED) + bytes(wire.DONE.size - 1)

    def answer(kind: int, call_id: int, payload: bytes) -> bytes:
        return frame(wire.DONE_FRAME, call_id, head + b"\xff" * 200_000)

    async with facing(answer) as sandbox:
        with suppress(SandboxDiedError):
            assert len((await sandbox.run(Command(("true",)))).exit.error) < 100_000


async def test_an_agent_that_does_not_read_is_given_up() -> None:
    """A file that it does not take is not sent for ever."""
    ours, theirs = socket.socketpair()
    channel = await Channel.over(ours, lambda: None)
    with theirs:
        theirs.send(frame(wire.HELLO, 0))
        await channel.wait_ready(5)
        async with asyncio.timeout(5):
            with pytest.raises(SandboxDiedError):
                await channel.upload(b"0\0file", bytes(8 << 20), timeout=0.2)
    channel.end("the test is over")
    await channel.closed()
