"""Whatever an agent sends, in whatever pieces, every caller gets an answer and the host lives."""

import asyncio
import itertools
import math
import struct
from collections.abc import Coroutine

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agents import frame

from turnout.errors import SandboxDiedError
from turnout.sandbox.base import BASE_ENV, Command, Exit
from turnout.sandbox.channel import Channel, Reply
from turnout.sandbox.inside import wire
from turnout.sandbox.resident.encoding import decode_exit, encode_command

NUMBERS = st.integers(0, 2**32 - 1)
DONE = st.builds(
    wire.DONE.pack,
    st.integers(0, 9),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**31), 2**31 - 1),
    st.floats(),
    *[st.integers(0, 2**64 - 1)] * 4,
    st.floats(),
    st.integers(0, 2**64 - 1),
)
PAYLOADS = st.one_of(st.binary(max_size=60), DONE, st.builds(wire.CREDIT.pack, NUMBERS))
FRAMES = st.builds(frame, st.integers(0, 30), st.one_of(st.integers(0, 4), NUMBERS), PAYLOADS)
TEXT = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), max_size=20)
NAMES = TEXT.filter(lambda name: name and "=" not in name)


class Sent:
    """Where the host's frames go: nowhere."""

    def __init__(self) -> None:
        self.closed = False

    def write(self, data: bytes) -> None:
        """Drop it."""

    def is_closing(self) -> bool:
        """Whether it was closed."""
        return self.closed

    async def drain(self) -> None:
        """Return at once."""

    def close(self) -> None:
        """Note it."""
        self.closed = True


async def outcome(call: Coroutine[None, None, object]) -> object:
    """Return what a call came to; None where the sandbox died."""
    try:
        return await call
    except SandboxDiedError:
        return None


async def spoken_to(data: bytes, cuts: list[int]) -> tuple[object, object]:
    """Let an agent say something to a command and to a request, then hang up."""
    reader, sent = asyncio.StreamReader(), Sent()
    ends = []
    channel = Channel(reader, sent, lambda: ends.append(1))

    async def last(command: Command) -> object:
        return [item async for item in channel.exec(command)][-1]

    command = asyncio.create_task(outcome(last(Command(("x",), raw=True))))
    request = asyncio.create_task(outcome(channel.request(wire.KILL_ALL, b"")))
    await asyncio.sleep(0)
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for start, end in itertools.pairwise(places):
        reader.feed_data(data[start:end])
        await asyncio.sleep(0)
    reader.feed_eof()
    async with asyncio.timeout(5):
        told = await command, await request
        await channel.closed()
    assert ends == [1]
    assert sent.closed
    return told


@given(
    st.lists(FRAMES, max_size=12), st.binary(max_size=20), st.lists(st.integers(0, 500), max_size=5)
)
@settings(max_examples=200, deadline=None)
def test_every_caller_is_answered(frames: list[bytes], rest: bytes, cuts: list[int]) -> None:
    """By an end that is in range, by a reply, or by the news that the sandbox is gone."""
    ended, reply = asyncio.run(spoken_to(b"".join(frames) + rest, cuts))
    if ended is not None:
        assert isinstance(ended, Exit)
        assert ended.code is None or 0 <= ended.code <= 255
        assert 0 <= ended.wall_seconds < math.inf
    assert reply is None or isinstance(reply, Reply)


@given(st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(min_size=1, max_size=9)), max_size=9))
@settings(max_examples=100, deadline=None)
def test_frames_find_their_callers(pieces: list[tuple[int, bytes]]) -> None:
    """However two answers are mixed, each caller gets its own, whole and in order."""

    async def mixed() -> tuple[bytes, bytes]:
        reader = asyncio.StreamReader()
        channel = Channel(reader, Sent(), lambda: None)

        async def output() -> bytes:
            items = channel.exec(Command(("x",), raw=True))
            return b"".join([item.data async for item in items if not isinstance(item, Exit)])

        tasks = [asyncio.create_task(output()) for _ in range(2)]
        await asyncio.sleep(0)
        for call_id, piece in pieces:
            reader.feed_data(frame(wire.STDOUT, call_id, piece))
        for call_id in (2, 1):
            end = wire.DONE.pack(wire.EXITED, 0, 0, 0.0, 0, 0, 0, 0, 0.0, 0)
            reader.feed_data(frame(wire.DONE_FRAME, call_id, end))
        async with asyncio.timeout(5):
            told = await tasks[0], await tasks[1]
        channel.end("the test is over")
        await channel.closed()
        return told

    expected = tuple(b"".join(piece for call, piece in pieces if call == each) for each in (1, 2))
    assert asyncio.run(mixed()) == expected


@given(st.one_of(st.binary(max_size=80), DONE, DONE.map(lambda data: data + b"why\xff")))
def test_an_end_is_in_range_or_none(payload: bytes) -> None:
    """No number that would hurt a record comes from inside."""
    ended = decode_exit(payload)
    if ended is None:
        return
    assert 0 <= ended.wall_seconds < math.inf
    assert ended.cpu_seconds is None or 0 <= ended.cpu_seconds < math.inf
    assert ended.code is None or 0 <= ended.code <= 255
    assert ended.signal is None or 0 < ended.signal < 65
    counts = (ended.stdout_bytes, ended.stderr_omitted, ended.peak_memory_bytes or 0)
    assert all(0 <= count < 1 << 63 for count in counts)
    assert len(payload) >= wire.DONE.size
    assert struct.unpack_from(">B", payload)[0] < 6


@given(st.lists(TEXT, min_size=1, max_size=5), st.dictionaries(NAMES, TEXT, max_size=4), TEXT)
def test_a_command_is_read_as_it_was_written(
    argv: list[str], env: dict[str, str], cwd: str
) -> None:
    """Arguments, folder and variables are whole, whatever characters they hold."""
    payload = encode_command(Command(tuple(argv), cwd=cwd, env=env))
    fields = [field.decode() for field in payload.split(b"\0")]
    count = int(fields[6])
    assert fields[5] == cwd
    assert fields[7 : 7 + count] == argv
    variables = dict(field.split("=", 1) for field in fields[7 + count :])
    assert variables == {**BASE_ENV, **env}
