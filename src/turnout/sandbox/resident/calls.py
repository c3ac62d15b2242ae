"""Calls that wait for the agent's frames."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from turnout.sandbox.inside import wire

__all__ = ["PIECE", "Call", "Send"]

PIECE = 1 << 18
"""Bytes of a file or of standard input that go into one frame."""

Send = Callable[[bytes], Awaitable[None]]

_FOR_CALLERS = (wire.STDOUT, wire.STDERR, wire.DONE_FRAME, wire.REPLY, wire.REFUSED)


@dataclass(slots=True)
class Call:
    """One caller that waits for frames of its id."""

    id: int
    deadline: float
    """Time of the loop at which a silent agent is given up."""
    raw: bool = False
    pausable: bool = False
    """Its deadline stands still while everything inside is stopped."""
    allowance: int = wire.MAX_FRAME + wire.FRAME_COST
    """Bytes that may still arrive without the caller having read any."""
    credit: int = wire.WINDOW
    """Bytes of standard input that may still be sent."""
    over: bool = False
    """The sandbox is gone."""
    frames: asyncio.Queue[tuple[int, bytes]] = field(default_factory=asyncio.Queue)
    credited: asyncio.Event = field(default_factory=asyncio.Event)
    ended: bool = False
    stopped_at: float | None = None
    timer: asyncio.Timeout | None = None

    @property
    def due(self) -> float | None:
        """The deadline; None while it stands still."""
        return self.deadline if self.stopped_at is None else None

    def take(self, kind: int, payload: bytes) -> bool:
        """Take a frame from the agent; False where that breaks the agreement."""
        if kind == wire.CREDIT_FRAME:
            if len(payload) != wire.CREDIT.size:
                return False
            self.credit = min(wire.WINDOW, self.credit + wire.CREDIT.unpack(payload)[0])
            self.credited.set()
        elif kind in _FOR_CALLERS:
            self.allowance -= len(payload) + wire.FRAME_COST
            self.frames.put_nowait((kind, payload))
        return self.allowance >= 0

    def acknowledge(self, payload: bytes) -> bytes:
        """Return what lets a raw output go on by as much as was read of it.

        Other outputs have a fixed allowance.
        """
        cost = len(payload) + wire.FRAME_COST
        self.allowance += cost
        return wire.CREDIT.pack(cost)

    def give_up(self) -> None:
        """Let everybody go who waits for the agent."""
        self.over = True
        self.frames.put_nowait((0, b""))
        self.credited.set()

    async def feed(self, stdin: bytes | AsyncIterator[bytes], send: Send) -> None:
        """Send standard input no faster than the command reads it, and its end."""
        if isinstance(stdin, bytes):
            await self._feed_piece(stdin, send)
        else:
            async for piece in stdin:
                await self._feed_piece(piece, send)
        await send(b"")

    async def _feed_piece(self, piece: bytes, send: Send) -> None:
        rest = memoryview(piece)
        while rest:
            while self.credit <= 0 and not self.over:
                self.credited.clear()
                await self.credited.wait()
            part = rest[: min(PIECE, max(1, self.credit))]
            rest = rest[len(part) :]
            self.credit -= len(part)
            await send(bytes(part))

    async def next(self) -> tuple[int, bytes]:
        """Return the next frame; `TimeoutError` past the deadline."""
        try:
            async with asyncio.timeout_at(self.due) as self.timer:
                return await self.frames.get()
        finally:
            self.timer = None

    def stop(self, now: float) -> None:
        """Let the deadline stand still."""
        if self.pausable and self.stopped_at is None:
            self.stopped_at = now
            self._wind(None)

    def go_on(self, now: float) -> None:
        """Let it move again, as far away as it was."""
        if self.stopped_at is not None:
            self.deadline += now - self.stopped_at
            self.stopped_at = None
            self._wind(self.deadline)

    def _wind(self, deadline: float | None) -> None:
        if self.timer is not None and not self.timer.expired():
            self.timer.reschedule(deadline)
