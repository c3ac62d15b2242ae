"""The host's end of the channel, against agents that keep to the agreement and that do not."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from turnout.errors import SandboxDiedError
from turnout.sandbox.base import Command, Exit, Output
from turnout.sandbox.channel import Channel
from turnout.sandbox.inside import wire

Frame = tuple[int, int, bytes]


class Agent:
    """The other end, driven by a test."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, kind: int, call_id: int, payload: bytes = b"") -> None:
        """Send one frame."""
        self.writer.write(wire.HEADER.pack(len(payload) + 5, kind, call_id) + payload)

    async def receive(self) -> Frame:
        """Return the next frame from the host."""
        head = await self.reader.readexactly(wire.HEADER.size)
        length, kind, call_id = wire.HEADER.unpack(head)
        return kind, call_id, await self.reader.readexactly(length - 5)

    def done(self, call_id: int, reason: int = wire.EXITED, code: int = 0) -> None:
        """Report the end of a command."""
        numbers = (reason, code, 0, 0.1, 2, 0, 0, 0, 0.25, 1 << 20)
        self.send(wire.DONE_FRAME, call_id, wire.DONE.pack(*numbers))


class Ended:
    """Counts how often the end was announced."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> None:
        """Count one."""
        self.times += 1


@asynccontextmanager
async def connected(
    ended: Callable[[], None] = lambda: None,
) -> AsyncIterator[tuple[Channel, Agent]]:
    """Connect a channel with an agent that has said that it is there."""
    ours, theirs = socket.socketpair()
    channel = await Channel.over(ours, ended)
    reader, writer = await asyncio.open_connection(sock=theirs)
    agent = Agent(reader, writer)
    agent.send(wire.HELLO, 0)
    try:
        await channel.wait_ready(5)
        yield channel, agent
    finally:
        channel.end("the test is over")
        await channel.closed()
        writer.close()


async def collect(channel: Channel, command: Command) -> list[Output | Exit]:
    """Return everything that a command yields."""
    return [item async for item in channel.exec(command)]


async def test_a_command_travels_whole() -> None:
    """Arguments, folder, variables and limits reach the agent as they are."""
    async with connected() as (channel, agent):
        command = Command(("a", "b c", "\udcff"), cwd="x", env={"K": "v=w"}, timeout=3, head=1)
        task = asyncio.create_task(collect(channel, command))
        kind, call_id, payload = await agent.receive()
        fields = payload.split(b"\0")
        assert kind == wire.EXEC
        assert fields[:7] == [b"3", b"1", b"32768", b"67108864", b"", b"x", b"3"]
        assert fields[7:10] == [b"a", b"b c", b"\xff"]
        assert b"K=v=w" in fields[10:]
        agent.send(wire.STDOUT, call_id, b"hi")
        agent.done(call_id, code=7)
        output, ended = await task
        assert output == Output("stdout", b"hi")
        assert isinstance(ended, Exit)
        assert (ended.reason, ended.code, ended.signal) == ("exited", 7, None)
        assert (ended.cpu_seconds, ended.peak_memory_bytes) == (0.25, 1 << 20)


async def test_frames_for_nobody_are_dropped() -> None:
    """Unknown kinds and ids that nobody asked for change nothing."""
    async with connected() as (channel, agent):
        task = asyncio.create_task(collect(channel, Command(("true",))))
        _, call_id, _ = await agent.receive()
        agent.send(wire.STDOUT, call_id + 1, b"not yours")
        agent.send(99, call_id, b"unknown")
        agent.send(wire.CREDIT_FRAME, 12345, wire.CREDIT.pack(1))
        agent.done(call_id)
        assert len(await task) == 1


HOSTILE: dict[str, Callable[[Agent, int], None]] = {
    "a false length": lambda agent, _: agent.writer.write(b"\xff\xff\xff\xff\x12\0\0\0\1"),
    "no length": lambda agent, _: agent.writer.write(bytes(9)),
    "a short end": lambda agent, call: agent.send(wire.DONE_FRAME, call, b"\0"),
    "an unknown reason": lambda agent, call: agent.done(call, reason=77),
    "a false credit": lambda agent, call: agent.send(wire.CREDIT_FRAME, call, b"1"),
    "hanging up": lambda agent, _: agent.writer.close(),
}


@pytest.mark.parametrize("what", sorted(HOSTILE))
async def test_a_broken_agreement_ends_the_sandbox(what: str) -> None:
    """Every caller is told, once, and later calls fail at once."""
    ended = Ended()
    async with connected(ended) as (channel, agent):
        tasks = [asyncio.create_task(collect(channel, Command(("true",)))) for _ in range(2)]
        _, call_id, _ = await agent.receive()
        HOSTILE[what](agent, call_id)
        for task in tasks:
            with pytest.raises(SandboxDiedError):
                await task
        with pytest.raises(SandboxDiedError):
            await channel.request(wire.KILL_ALL, b"")
        assert ended.times == 1


@pytest.mark.parametrize("size", [0, 1 << 20])
async def test_more_output_than_agreed_ends_the_sandbox(size: int) -> None:
    """The host takes no more than head and tail, whether in few frames or in many."""
    async with connected() as (channel, agent):
        task = asyncio.create_task(collect(channel, Command(("true",), head=10, tail=10)))
        _, call_id, _ = await agent.receive()
        for _ in range(300_000):
            if task.done():
                break
            agent.send(wire.STDOUT, call_id, bytes(size))
            await asyncio.sleep(0)
        with pytest.raises(SandboxDiedError, match="more than was agreed"):
            await task


async def test_an_agent_that_is_silent_is_given_up() -> None:
    """The host has its own deadline, later than the agent's."""
    async with connected() as (channel, agent):
        request = asyncio.create_task(channel.request(wire.KILL_ALL, b"", timeout=0.01))
        await agent.receive()
        with pytest.raises(SandboxDiedError, match="did not answer"):
            await request


async def test_leaving_a_command_cancels_it() -> None:
    """The agent is told that nobody listens any more."""
    async with connected() as (channel, agent):
        task = asyncio.create_task(collect(channel, Command(("sleep",))))
        _, call_id, _ = await agent.receive()
        task.cancel()
        await asyncio.wait([task])
        assert await agent.receive() == (wire.CANCEL, call_id, b"")


async def test_input_waits_for_credit() -> None:
    """No more is under way than the window, until the agent has taken some."""
    async with connected() as (channel, agent):
        command = Command(("cat",), stdin=bytes(wire.WINDOW + 10))
        task = asyncio.create_task(collect(channel, command))
        _, call_id, _ = await agent.receive()
        received = 0
        while received < wire.WINDOW:
            received += len((await agent.receive())[2])
        assert received == wire.WINDOW
        agent.send(wire.CREDIT_FRAME, call_id, wire.CREDIT.pack(10))
        assert len((await agent.receive())[2]) == 10
        assert (await agent.receive())[0] == wire.INPUT
        agent.done(call_id)
        await task


async def test_raw_output_is_acknowledged() -> None:
    """What the caller has read, the agent may send again."""
    async with connected() as (channel, agent):
        task = asyncio.create_task(collect(channel, Command(("cat",), raw=True)))
        _, call_id, _ = await agent.receive()
        agent.send(wire.STDOUT, call_id, bytes(1000))
        kind, _, payload = await agent.receive()
        assert kind == wire.CREDIT_FRAME
        assert wire.CREDIT.unpack(payload) == (1000 + wire.FRAME_COST,)
        agent.done(call_id)
        await task


async def test_deadlines_stand_still_while_everything_is_stopped() -> None:
    """Those of commands that were running, by as long as it took, and of no other call."""
    async with connected() as (channel, agent):
        command = Command(("x",), timeout=0.2)
        running = asyncio.create_task(collect(channel, command))
        _, running_id, _ = await agent.receive()
        call = channel._calls[running_id]
        before = call.deadline
        for change, kind in ((channel.freeze, wire.PAUSE), (channel.thaw, wire.RESUME)):
            changing = asyncio.create_task(change())
            received, call_id, _ = await agent.receive()
            assert received == kind
            agent.send(wire.REPLY, call_id)
            await changing
            if kind == wire.PAUSE:
                assert call.timer is not None
                assert call.timer.when() is None
                await asyncio.sleep(0.05)
        assert call.deadline >= before + 0.05
        assert call.timer is not None
        assert call.timer.when() == call.deadline
        agent.done(running_id)
        await running


async def test_input_that_fails_is_the_callers_error() -> None:
    """The command is cancelled, and the channel goes on."""

    async def broken() -> AsyncIterator[bytes]:
        yield b"some"
        raise LookupError("lost")

    async with connected() as (channel, agent):
        task = asyncio.create_task(collect(channel, Command(("cat",), stdin=broken())))
        _, call_id, _ = await agent.receive()
        with pytest.raises(LookupError):
            await task
        assert await agent.receive() == (wire.INPUT, call_id, b"some")
        assert await agent.receive() == (wire.CANCEL, call_id, b"")


async def test_leaving_an_upload_cancels_it() -> None:
    """What was sent of it is of no use without the rest."""
    async with connected() as (channel, agent):
        task = asyncio.create_task(channel.upload(b"-1\0path", b"data"))
        for kind in (wire.WRITE_FILE, wire.INPUT, wire.INPUT):
            assert (await agent.receive())[0] == kind
        task.cancel()
        await asyncio.wait([task])
        assert (await agent.receive())[0] == wire.CANCEL


async def test_the_end_is_announced_to_all_who_asked() -> None:
    """Also to those who ask when it is over."""
    ended = Ended()
    async with connected(ended) as (channel, _):
        channel.when_ended(ended)
        channel.end("a test wants it", mend="Start again.")
        assert ended.times == 2
        channel.when_ended(ended)
        assert ended.times == 3
        with pytest.raises(SandboxDiedError, match=r"a test wants it\. Start again\."):
            await channel.request(wire.KILL_ALL, b"")


async def test_a_command_that_cannot_be_passed_is_refused() -> None:
    """A NUL byte would end a field, a variable's name holds no `=`."""
    async with connected() as (channel, _):
        for command in (
            Command(("a\0b",)),
            Command(("a",), env={"A=B": "c"}),
            Command(("a",), env={"": "c"}),
        ):
            with pytest.raises(ValueError, match="NUL"):
                await collect(channel, command)


def descriptors() -> int:
    """Return how many descriptors this process has."""
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_nothing_of_a_channel_is_left() -> None:
    """Its socket is closed when it has ended."""
    before = descriptors()
    async with connected():
        pass
    await asyncio.sleep(0)
    assert descriptors() <= before
