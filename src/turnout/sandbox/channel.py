"""The host's end of the channel to a resident agent.

Whatever comes out of a sandbox may have been written by what runs in it: lengths are capped, kinds
and ids that nobody asked for are dropped, and more output than was agreed on ends the sandbox.
"""

import asyncio
import itertools
import os
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from turnout.errors import SandboxDiedError
from turnout.sandbox.base import BASE_ENV, Command, Exit, ExitReason, Output
from turnout.sandbox.inside import wire

__all__ = ["Channel", "Reply"]

_REASONS: tuple[ExitReason, ...] = (
    "exited",
    "timeout",
    "output_limit",
    "cancelled",
    "not_started",
)
_DEADLINE_SLACK = 5.0
_PIECE = 1 << 18
_SLACK = 1 << 20
"""What an output may exceed its head and tail by, in bytes and in costs of frames."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the agent answered to a request about a file."""

    done: bool
    payload: bytes
    """What was asked for, or why it was refused."""


@dataclass(slots=True)
class _Call:
    """One caller that waits for frames of its id."""

    id: int
    raw: bool = False
    allowance: int = wire.MAX_FRAME + wire.FRAME_COST
    """Bytes that may still arrive without the caller having read any."""
    credit: int = wire.WINDOW
    """Bytes of standard input that may still be sent."""
    frames: asyncio.Queue[tuple[int, bytes]] = field(default_factory=asyncio.Queue)
    credited: asyncio.Event = field(default_factory=asyncio.Event)
    ended: bool = False


def _encode_command(command: Command) -> bytes:
    """Return the payload that starts a command; `ValueError` where a field cannot be passed."""
    argv = command.argv or ("/bin/bash", "-c", command.shell or "")
    env = {**BASE_ENV, **command.env}
    flags = "".join(
        letter
        for letter, on in (
            ("b", command.background),
            ("r", command.raw),
            ("i", command.stdin is not None),
        )
        if on
    )
    numbers = (command.timeout, command.head, command.tail, command.kill_after_bytes)
    fields = [*map(str, numbers), flags, command.cwd, str(len(argv)), *argv]
    fields += [f"{name}={value}" for name, value in env.items()]
    if any("\0" in item for item in fields) or any("=" in name or not name for name in env):
        raise ValueError("a command, its folder and its variables hold no NUL byte")
    return b"\0".join(os.fsencode(item) for item in fields)


def _decode_exit(payload: bytes) -> Exit | None:
    """Return the end of a command; None where the frame is malformed."""
    if len(payload) < wire.DONE.size:
        return None
    reason, code, number, wall, out, err, out_gone, err_gone = wire.DONE.unpack_from(payload)
    if reason >= len(_REASONS):
        return None
    return Exit(
        reason=_REASONS[reason],
        code=code if 0 <= code <= 255 else None,
        signal=number or None,
        wall_seconds=wall,
        stdout_bytes=out,
        stderr_bytes=err,
        stdout_omitted=out_gone,
        stderr_omitted=err_gone,
        error=payload[wire.DONE.size :].decode(errors="backslashreplace"),
    )


class Channel:
    """Carries commands and file requests to one agent and their answers back."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        on_end: Callable[[], None],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._on_end = on_end
        self._calls: dict[int, _Call] = {}
        self._ids = itertools.count(1)
        self._dead = ""
        self._hello = asyncio.Event()
        self._task = asyncio.create_task(self._read_frames())

    @classmethod
    async def over(cls, sock: socket.socket, on_end: Callable[[], None]) -> "Channel":
        """Return a channel over a connected stream socket; `on_end` is called once at its end."""
        reader, writer = await asyncio.open_connection(sock=sock)
        return cls(reader, writer, on_end)

    async def wait_ready(self, timeout: float) -> None:
        """Wait until the agent runs; `SandboxDiedError` where it does not come up."""
        try:
            async with asyncio.timeout(timeout):
                await self._hello.wait()
        except TimeoutError:
            self.end(f"its agent did not start within {timeout:g} s")
        self._check()

    def end(self, reason: str) -> None:
        """Give the sandbox up: every caller gets `SandboxDiedError`."""
        if self._dead:
            return
        self._dead = reason
        self._hello.set()
        for call in self._calls.values():
            call.frames.put_nowait((0, b""))
            call.credited.set()
        self._task.cancel()
        self._writer.close()
        self._on_end()

    async def closed(self) -> None:
        """Wait until nothing of the channel is left."""
        await asyncio.wait([self._task])

    async def request(self, kind: int, payload: bytes, *, timeout: float = 30.0) -> Reply:
        """Ask for something that is answered by one frame."""
        call = self._open()
        try:
            await self._send(kind, call.id, payload)
            return await self._reply(call, timeout)
        finally:
            del self._calls[call.id]

    async def upload(self, head: bytes, data: bytes, *, timeout: float = 60.0) -> Reply:
        """Write a file in pieces."""
        call = self._open()
        try:
            await self._send(wire.WRITE_FILE, call.id, head)
            for start in range(0, len(data), _PIECE):
                await self._send(wire.INPUT, call.id, data[start : start + _PIECE])
            await self._send(wire.INPUT, call.id, b"")
            return await self._reply(call, timeout)
        finally:
            del self._calls[call.id]

    async def exec(self, command: Command) -> AsyncIterator[Output | Exit]:
        """Run a command; when the caller stops listening, it is ended."""
        call = self._open(raw=command.raw)
        if not command.raw:
            kept = (1 + wire.FRAME_COST) * command.head + command.tail
            call.allowance = 2 * kept + _SLACK
        feeder: asyncio.Task[None] | None = None
        loop = asyncio.get_running_loop()
        deadline = loop.time() + command.timeout + wire.GRACE_SECONDS + _DEADLINE_SLACK
        try:
            await self._send(wire.EXEC, call.id, _encode_command(command))
            if command.stdin is not None:
                feeder = asyncio.create_task(self._feed(call, command.stdin))
            while not call.ended:
                kind, payload = await self._next(call, deadline)
                if kind == wire.DONE_FRAME:
                    call.ended = True
                    yield self._exit(payload)
                elif kind in (wire.STDOUT, wire.STDERR):
                    await self._acknowledge(call, kind, len(payload))
                    yield Output("stdout" if kind == wire.STDOUT else "stderr", payload)
        finally:
            del self._calls[call.id]
            if feeder is not None:
                feeder.cancel()
                await asyncio.wait([feeder])
            if not call.ended and not self._dead:
                self._post(wire.CANCEL, call.id, b"")

    def _open(self, *, raw: bool = False) -> _Call:
        self._check()
        call = _Call(next(self._ids), raw=raw)
        self._calls[call.id] = call
        return call

    def _check(self) -> None:
        if self._dead:
            raise SandboxDiedError(f"The sandbox is gone: {self._dead}.")

    def _post(self, kind: int, call_id: int, payload: bytes) -> None:
        self._writer.write(wire.HEADER.pack(len(payload) + 5, kind, call_id) + payload)

    async def _send(self, kind: int, call_id: int, payload: bytes) -> None:
        self._check()
        if len(payload) + 5 > wire.MAX_FRAME:
            raise ValueError("a command or a path is too long for one frame")
        self._post(kind, call_id, payload)
        try:
            await self._writer.drain()
        except OSError:
            self.end("its channel broke")
            self._check()

    async def _next(self, call: _Call, deadline: float) -> tuple[int, bytes]:
        """Return the next frame of a call; a sandbox that is silent past the deadline is ended."""
        try:
            async with asyncio.timeout_at(deadline):
                kind, payload = await call.frames.get()
        except TimeoutError:
            self.end("its agent did not answer in time")
            kind, payload = 0, b""
        if kind == 0:
            self._check()
        return kind, payload

    async def _reply(self, call: _Call, timeout: float) -> Reply:
        deadline = asyncio.get_running_loop().time() + timeout
        while True:
            kind, payload = await self._next(call, deadline)
            if kind in (wire.REPLY, wire.REFUSED):
                return Reply(kind == wire.REPLY, payload)

    def _exit(self, payload: bytes) -> Exit:
        ended = _decode_exit(payload)
        if ended is None:
            self.end("its agent sent a malformed frame")
            raise SandboxDiedError(f"The sandbox is gone: {self._dead}.")
        return ended

    async def _acknowledge(self, call: _Call, kind: int, count: int) -> None:
        """Let a raw output go on by as much as was read; other outputs have a fixed allowance."""
        if call.raw and kind == wire.STDOUT:
            cost = count + wire.FRAME_COST
            call.allowance += cost
            await self._send(wire.CREDIT_FRAME, call.id, wire.CREDIT.pack(cost))

    async def _feed(self, call: _Call, stdin: bytes | AsyncIterator[bytes]) -> None:
        """Send standard input no faster than the command reads it."""
        try:
            if isinstance(stdin, bytes):
                await self._feed_piece(call, stdin)
            else:
                async for piece in stdin:
                    await self._feed_piece(call, piece)
            await self._send(wire.INPUT, call.id, b"")
        except SandboxDiedError:
            return

    async def _feed_piece(self, call: _Call, piece: bytes) -> None:
        rest = memoryview(piece)
        while rest:
            while call.credit <= 0:
                call.credited.clear()
                await call.credited.wait()
                self._check()
            part = rest[: min(_PIECE, call.credit)]
            rest = rest[len(part) :]
            call.credit -= len(part)
            await self._send(wire.INPUT, call.id, bytes(part))

    async def _read_frames(self) -> None:
        reason = "its agent ended"
        try:
            while True:
                head = await self._reader.readexactly(wire.HEADER.size)
                length, kind, call_id = wire.HEADER.unpack(head)
                if not 5 <= length <= wire.MAX_FRAME:
                    reason = "its agent sent a frame of a false length"
                    break
                payload = await self._reader.readexactly(length - 5)
                if not self._deliver(kind, call_id, payload):
                    reason = "its agent sent more than was agreed"
                    break
        except (asyncio.IncompleteReadError, OSError):
            pass
        self.end(reason)

    def _deliver(self, kind: int, call_id: int, payload: bytes) -> bool:
        """Pass a frame to its caller; False where the agent broke the agreement."""
        if kind == wire.HELLO:
            self._hello.set()
            return True
        call = self._calls.get(call_id)
        if call is None:
            return True
        if kind == wire.CREDIT_FRAME:
            if len(payload) != wire.CREDIT.size:
                return False
            call.credit = min(wire.WINDOW, call.credit + wire.CREDIT.unpack(payload)[0])
            call.credited.set()
            return True
        if kind in (wire.STDOUT, wire.STDERR, wire.DONE_FRAME, wire.REPLY, wire.REFUSED):
            call.allowance -= len(payload) + wire.FRAME_COST
            call.frames.put_nowait((kind, payload))
        return call.allowance >= 0
