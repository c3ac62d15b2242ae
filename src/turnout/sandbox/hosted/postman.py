"""Carrying the frames of a channel to a rented machine call by call.

The host of the machine runs commands and moves files, and offers no stream that lasts. So the
frames of each call are gathered and handed to a courier inside, and what couriers bring is fetched
until the call has ended. No request to the host takes longer than half a minute by design.
"""

import asyncio
import base64
import shlex
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pydantic import Base64Bytes, BaseModel, ValidationError

from turnout.errors import SandboxError
from turnout.sandbox.hosted.machine import HostedMachine
from turnout.sandbox.inside import wire

__all__ = ["Postman"]

_PIECE = 1 << 18
_INLINE = 48 << 10
_PART = 8 << 20
_MOST_BROUGHT = 16 << 20
_SLICE_SECONDS = 120.0
"""Longer than a courier stays, and what comes and goes with it takes."""
_ENDS = (wire.DONE_FRAME, wire.REPLY, wire.REFUSED)
_ANSWERS = (wire.STDOUT, wire.STDERR, *_ENDS)


class _Told(BaseModel):
    """What a courier printed."""

    inline: Base64Bytes = b""
    file: bool = False
    more: bool


@dataclass(slots=True)
class _Letter:
    """One call that is gathered, carried or answered."""

    call: int
    kind: int
    raw: bool
    fed: bool
    """More frames belong to it; one without a payload is the last."""
    pieces: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue)
    """Frames as they come."""
    window: int = wire.WINDOW
    """Bytes of a raw output that may still be passed on unread."""
    credited: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


def _frame(kind: int, call: int, payload: bytes = b"") -> bytes:
    return wire.HEADER.pack(len(payload) + 5, kind, call) + payload


class Postman:
    """Serves one end of a socket pair whose other end is a `Channel`."""

    def __init__(self, machine: HostedMachine, folder: str, python: str) -> None:
        """`folder` is where keeper and courier are on the machine."""
        self._machine = machine
        self._folder = folder
        self._courier = shlex.join([python, "-ISE", f"{folder}/courier.py", folder])
        self._letters: dict[int, _Letter] = {}
        self._sending = asyncio.Lock()
        self._paused = False
        self._endings: set[asyncio.Task[None]] = set()

    async def serve(self, sock: socket.socket) -> str:
        """Serve until the channel ends or the machine fails; returns why it failed."""
        loop = asyncio.get_running_loop()
        failed: asyncio.Future[str] = loop.create_future()
        reading = asyncio.create_task(self._read(sock, failed))
        try:
            await self._run(0, "", _SLICE_SECONDS)
            await self._send(sock, _frame(wire.HELLO, 0))
            ends: tuple[asyncio.Future[Any], ...] = (reading, failed)
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            return failed.result() if failed.done() else ""
        except SandboxError as error:
            return error.message.removesuffix(".")
        finally:
            tasks = {letter.task for letter in self._letters.values() if letter.task is not None}
            tasks |= {reading, *self._endings}
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _read(self, sock: socket.socket, failed: asyncio.Future[str]) -> None:
        loop = asyncio.get_running_loop()
        received = bytearray()
        while data := await loop.sock_recv(sock, _PIECE):
            received += data
            while len(received) >= wire.HEADER.size:
                length, kind, call = wire.HEADER.unpack_from(received)
                if len(received) < length + 4:
                    break
                frame = bytes(received[: length + 4])
                del received[: length + 4]
                self._sort(sock, failed, kind, call, frame)

    def _sort(
        self, sock: socket.socket, failed: asyncio.Future[str], kind: int, call: int, frame: bytes
    ) -> None:
        """Put a frame to its call."""
        letter = self._letters.get(call)
        if kind == wire.CANCEL:
            if letter is not None and letter.task is not None:
                letter.task.cancel()
                ending = asyncio.create_task(self._cancel(call))
                self._endings.add(ending)
                ending.add_done_callback(self._endings.discard)
        elif kind == wire.CREDIT_FRAME:
            if letter is not None:
                letter.window += wire.CREDIT.unpack_from(frame, wire.HEADER.size)[0]
                letter.credited.set()
        elif kind == wire.INPUT:
            if letter is not None:
                letter.pieces.put_nowait(frame)
        else:
            letter = _letter(kind, call, frame)
            self._letters[call] = letter
            letter.task = asyncio.create_task(self._deliver(sock, failed, letter))

    async def _deliver(
        self, sock: socket.socket, failed: asyncio.Future[str], letter: _Letter
    ) -> None:
        try:
            if letter.kind in (wire.PAUSE, wire.RESUME) and await self._change_pace(letter):
                await self._send(sock, _frame(wire.REPLY, letter.call))
            else:
                sent = await self._gather(sock, letter)
                if self._endings:
                    # What was given up before this call must not be met by it.
                    await asyncio.wait(self._endings)
                async for kind, answer in self._carried(letter, sent):
                    await self._pass_on(sock, letter, kind, answer)
        except SandboxError as error:
            if not failed.done():
                failed.set_result(error.message.removesuffix("."))
        except OSError:
            return
        finally:
            del self._letters[letter.call]

    async def _change_pace(self, letter: _Letter) -> bool:
        """Pause or resume the whole machine; False where the agent has to do it."""
        if letter.kind == wire.PAUSE and len(self._letters) == 1:
            self._paused = await self._machine.pause()
            return self._paused
        if letter.kind == wire.RESUME and self._paused:
            await self._machine.resume()
            self._paused = False
            return True
        return False

    async def _gather(self, sock: socket.socket, letter: _Letter) -> str:
        """Return what the courier is told of the frames that it shall carry."""
        whole = bytearray(await letter.pieces.get())
        parts = 0
        ends = not letter.fed
        while not ends:
            piece = await letter.pieces.get()
            whole += piece
            length = len(piece) - wire.HEADER.size
            ends = not length
            if length and letter.kind == wire.EXEC:
                await self._send(sock, _credit(letter.call, length))
            if len(whole) >= _PART:
                await self._machine.write(f"{self._folder}/{letter.call}.in.{parts}", bytes(whole))
                parts += 1
                whole.clear()
        if not parts and len(whole) <= _INLINE:
            return base64.b64encode(whole).decode()
        await self._machine.write(f"{self._folder}/{letter.call}.in.{parts}", bytes(whole))
        return f"parts:{parts + 1}"

    async def _carried(self, letter: _Letter, sent: str) -> AsyncIterator[tuple[int, bytes]]:
        """Yield the frames of the answer; what is in them the channel checks."""
        received = bytearray()
        while sent:
            told = await self._run(letter.call, sent, _SLICE_SECONDS)
            received += await self._fetch(letter, told)
            while len(received) >= wire.HEADER.size:
                length, kind, call = wire.HEADER.unpack_from(received)
                if not 5 <= length <= wire.MAX_FRAME:
                    raise SandboxError("its agent sent a frame of a false length")
                if len(received) < length + 4:
                    break
                frame = bytes(received[: length + 4])
                del received[: length + 4]
                if call == letter.call and kind in _ANSWERS:
                    yield kind, frame
            sent = "more" if told.more else ""

    async def _fetch(self, letter: _Letter, told: _Told) -> bytes:
        if not told.file:
            return told.inline
        return await self._machine.read(f"{self._folder}/{letter.call}.out", limit=_MOST_BROUGHT)

    async def _pass_on(self, sock: socket.socket, letter: _Letter, kind: int, frame: bytes) -> None:
        """Send a frame to the channel, a raw output no faster than it is read."""
        if letter.raw and kind == wire.STDOUT:
            while letter.window <= 0:
                letter.credited.clear()
                await letter.credited.wait()
            letter.window -= len(frame) - wire.HEADER.size + wire.FRAME_COST
        await self._send(sock, frame)

    async def _cancel(self, call: int) -> None:
        """End a call whose answer nobody awaits any more."""
        sent = base64.b64encode(_frame(wire.CANCEL, call)).decode()
        with suppress(SandboxError):
            await self._run(call, sent, _SLICE_SECONDS)
            left = f"{shlex.quote(self._folder)}/{call}.*"
            await self._machine.run(f"rm -f {left}", timeout=_SLICE_SECONDS)

    async def _run(self, call: int, sent: str, timeout: float) -> _Told:
        line = f"{self._courier} {call} {shlex.quote(sent)}"
        ran = await self._machine.run(line, timeout=timeout)
        lines = ran.stdout.strip().splitlines()
        if ran.code != 0 or not lines:
            why = ran.stderr.strip().splitlines()
            raise SandboxError(why[-1][:200] if why else f"its courier ended with {ran.code}")
        try:
            return _Told.model_validate_json(lines[-1])
        except ValidationError:
            raise SandboxError("its courier said what cannot be read") from None

    async def _send(self, sock: socket.socket, frame: bytes) -> None:
        async with self._sending:
            await asyncio.get_running_loop().sock_sendall(sock, frame)


def _credit(call: int, count: int) -> bytes:
    return _frame(wire.CREDIT_FRAME, call, wire.CREDIT.pack(count))


def _letter(kind: int, call: int, frame: bytes) -> _Letter:
    flags = frame[wire.HEADER.size :].split(b"\0", 5)[4] if kind == wire.EXEC else b""
    fed = kind == wire.WRITE_FILE or b"i" in flags
    letter = _Letter(call, kind, raw=b"r" in flags, fed=fed)
    letter.pieces.put_nowait(frame)
    return letter
