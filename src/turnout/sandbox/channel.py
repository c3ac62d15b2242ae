"""The host's end of the channel to a resident agent.

Whatever comes out of a sandbox may have been written by what runs in it: lengths are capped, kinds
and ids that nobody asked for are dropped, and more output than was agreed on ends the sandbox.
"""

import asyncio
import itertools
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial

from turnout.errors import SandboxDiedError
from turnout.sandbox.base import Command, Exit, Output
from turnout.sandbox.inside import wire
from turnout.sandbox.resident.calls import PIECE, Call
from turnout.sandbox.resident.encoding import decode_exit, encode_command
from turnout.sandbox.resident.listener import receive_listener

__all__ = ["Channel", "Reply", "receive_listener"]

_DEADLINE_SLACK = 5.0
_FED = (wire.INPUT, b"")
"""Tells a call that its standard input came to an end, good or bad."""
_SLACK = 1 << 20
"""What an output may exceed its head and tail by, in bytes and in costs of frames."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the agent answered to a request about a file."""

    done: bool
    payload: bytes
    """What was asked for, or why it was refused."""


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
        self._on_end = [on_end]
        self._calls: dict[int, Call] = {}
        self._ids = itertools.count(1)
        self._dead: SandboxDiedError | None = None
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

    def when_ended(self, callback: Callable[[], None]) -> None:
        """Call something at the end, beside what ends the sandbox."""
        self._on_end.append(callback)
        if self._dead is not None:
            callback()

    def end(self, reason: str, *, mend: str = "") -> None:
        """Give the sandbox up: every caller gets `SandboxDiedError`."""
        if self._dead is not None:
            return
        self._dead = SandboxDiedError(f"The sandbox is gone: {reason}.", mend=mend)
        self._hello.set()
        for call in self._calls.values():
            call.give_up()
        self._task.cancel()
        self._writer.close()
        for callback in self._on_end:
            callback()

    async def closed(self) -> None:
        """Wait until nothing of the channel is left."""
        await asyncio.wait([self._task])

    async def request(self, kind: int, payload: bytes, *, timeout: float = 30.0) -> Reply:
        """Ask for something that is answered by one frame."""
        call = self._open(timeout)
        try:
            await self._send(call, kind, payload)
            return await self._reply(call)
        finally:
            del self._calls[call.id]

    async def upload(self, head: bytes, data: bytes, *, timeout: float = 60.0) -> Reply:
        """Write a file in pieces; `timeout` is for each of them."""
        loop = asyncio.get_running_loop()
        call = self._open(timeout)
        try:
            await self._send(call, wire.WRITE_FILE, head)
            for start in range(0, len(data), PIECE):
                await self._send(call, wire.INPUT, data[start : start + PIECE])
                call.deadline = loop.time() + timeout
            await self._send(call, wire.INPUT, b"")
            return await self._reply(call)
        finally:
            self._leave(call)

    async def freeze(self) -> None:
        """Stop everything inside; deadlines of commands stand still, here and there."""
        await self.request(wire.PAUSE, b"")
        now = asyncio.get_running_loop().time()
        for call in self._calls.values():
            call.stop(now)

    async def thaw(self) -> None:
        """Let everything inside go on."""
        await self.request(wire.RESUME, b"")
        now = asyncio.get_running_loop().time()
        for call in self._calls.values():
            call.go_on(now)

    async def exec(self, command: Command) -> AsyncIterator[Output | Exit]:
        """Run a command; when the caller stops listening, it is ended."""
        call = self._open(command.timeout + wire.GRACE_SECONDS + _DEADLINE_SLACK)
        call.pausable, call.raw = True, command.raw
        if not command.raw:
            kept = (1 + wire.FRAME_COST) * command.head + command.tail
            call.allowance = 2 * kept + _SLACK
        feeder: asyncio.Task[None] | None = None
        try:
            await self._send(call, wire.EXEC, encode_command(command))
            if command.stdin is not None:
                send = partial(self._send, call, wire.INPUT)
                feeder = asyncio.create_task(call.feed(command.stdin, send))
                feeder.add_done_callback(lambda _: call.frames.put_nowait(_FED))
            while not call.ended:
                kind, payload = await self._next(call)
                if kind == wire.DONE_FRAME:
                    ended = decode_exit(payload)
                    if ended is None:
                        self.end("its agent sent a malformed frame")
                        continue
                    call.ended = True
                    yield ended
                elif kind in (wire.STDOUT, wire.STDERR):
                    if call.raw and kind == wire.STDOUT:
                        credit = call.acknowledge(payload)
                        await self._send(call, wire.CREDIT_FRAME, credit)
                    yield Output("stdout" if kind == wire.STDOUT else "stderr", payload)
                elif kind == wire.INPUT and feeder is not None:
                    await feeder
        finally:
            self._leave(call)
            if feeder is not None:
                feeder.cancel()
                await asyncio.gather(feeder, return_exceptions=True)

    def _open(self, seconds: float) -> Call:
        """Note a call that is to be answered within some seconds."""
        self._check()
        deadline = asyncio.get_running_loop().time() + seconds
        call = Call(next(self._ids), deadline)
        self._calls[call.id] = call
        return call

    def _leave(self, call: Call) -> None:
        """Forget a call; the agent is told where it may not have come to its end."""
        del self._calls[call.id]
        if not call.ended and self._dead is None:
            self._post(wire.CANCEL, call.id, b"")

    def _check(self) -> None:
        if self._dead is not None:
            raise SandboxDiedError(self._dead.message, mend=self._dead.mend)

    def _post(self, kind: int, call_id: int, payload: bytes) -> None:
        # uvloop's transports raise a RuntimeError once they are closed; `drain` tells that itself.
        if not self._writer.is_closing():
            self._writer.write(wire.HEADER.pack(len(payload) + 5, kind, call_id) + payload)

    async def _send(self, call: Call, kind: int, payload: bytes) -> None:
        self._check()
        if len(payload) + 5 > wire.MAX_FRAME:
            raise ValueError("a command or a path is too long for one frame")
        self._post(kind, call.id, payload)
        try:
            async with asyncio.timeout_at(call.due):
                await self._writer.drain()
        except TimeoutError:
            self.end("its agent does not read")
            self._check()
        except OSError:
            self.end("its channel broke")
            self._check()

    async def _next(self, call: Call) -> tuple[int, bytes]:
        """Return the next frame of a call; a sandbox that is silent past the deadline is ended."""
        try:
            kind, payload = await call.next()
        except TimeoutError:
            self.end("its agent did not answer in time")
            kind, payload = 0, b""
        if kind == 0:
            self._check()
        return kind, payload

    async def _reply(self, call: Call) -> Reply:
        while True:
            kind, payload = await self._next(call)
            if kind in (wire.REPLY, wire.REFUSED):
                call.ended = True
                return Reply(kind == wire.REPLY, payload)

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
        return call is None or call.take(kind, payload)
