"""When a sandbox is frozen because nobody uses it, and when it is ended because its time is over.

Time is that of the event loop, which no change of the machine's clock touches.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Protocol

from turnout.errors import SandboxError
from turnout.sandbox.base import Limits

__all__ = ["Freezer", "Lifetime", "Timer", "Timers"]


class Timer(Protocol):
    """A call that is still to come."""

    def cancel(self) -> None:
        """Let it not come."""
        ...


class Timers(Protocol):
    """What of an event loop has to do with time."""

    def time(self) -> float:
        """Return seconds that never jump."""
        ...

    def call_later(self, delay: float, callback: Callable[[], object]) -> Timer:
        """Call once, after some seconds."""
        ...


class Freezer(Protocol):
    """Stops everything in a sandbox and lets it go on."""

    async def freeze(self) -> None:
        """Stop everything."""
        ...

    async def thaw(self) -> None:
        """Let everything go on."""
        ...


class Lifetime:
    """Counts the calls of one sandbox; freezes it when there is none for long, ends it at last.

    `expire` is told why it ends. Nothing is scheduled any more after `stop`.
    """

    def __init__(
        self, limits: Limits, freezer: Freezer, expire: Callable[[str], None], timers: Timers
    ) -> None:
        self._limits = limits
        self._freezer = freezer
        self._expire = expire
        self._timers = timers
        self._began = self._idle_since = timers.time()
        self._calls = 0
        self._frozen_at: float | None = None
        self._thawed_seconds = 0.0
        self._changing = asyncio.Lock()
        self._falling_asleep: asyncio.Task[None] | None = None
        self._stopped = False
        self._idle: Timer | None = None
        self._end = timers.call_later(limits.lifetime_seconds, self._over)
        self._await_idleness(limits.idle_seconds)

    @property
    def age(self) -> float:
        """Seconds since it began."""
        return self._timers.time() - self._began

    @property
    def frozen_seconds(self) -> float:
        """How long of its age it was frozen."""
        now = self._timers.time()
        current = 0.0 if self._frozen_at is None else now - self._frozen_at
        return self._thawed_seconds + current

    @asynccontextmanager
    async def call(self) -> AsyncIterator[None]:
        """Thaw it, and let it not be found idle meanwhile."""
        self._calls += 1
        try:
            if self._frozen_at is not None or self._changing.locked():
                await self.resume()
            yield
        finally:
            self._calls -= 1
            self._note_idleness()

    @asynccontextmanager
    async def frozen(self) -> AsyncIterator[None]:
        """Keep it frozen meanwhile, whoever calls; afterwards it is as it was before."""
        async with self._changing:
            before = self._frozen_at is not None
            await self._freeze()
            try:
                yield
            finally:
                if not before:
                    await self._thaw()
        self._note_idleness()

    @asynccontextmanager
    async def unchanged(self) -> AsyncIterator[None]:
        """Neither freeze nor thaw it meanwhile: what is begun now is not stopped half-way."""
        async with self._changing:
            yield

    async def pause(self) -> None:
        """Freeze it; calls that are under way stand still."""
        async with self._changing:
            await self._freeze()

    async def resume(self) -> None:
        """Thaw it."""
        async with self._changing:
            await self._thaw()
        self._note_idleness()

    def stop(self) -> None:
        """Schedule nothing any more."""
        self._stopped = True
        self._end.cancel()
        for pending in (self._idle, self._falling_asleep):
            if pending is not None:
                pending.cancel()
        self._idle = None

    async def _freeze(self) -> None:
        if self._frozen_at is None:
            # Noted before it is so: given up half-way, it has to be thawed all the same.
            self._frozen_at = self._timers.time()
            await self._freezer.freeze()

    async def _thaw(self) -> None:
        if self._frozen_at is not None:
            await self._freezer.thaw()
            self._thawed_seconds += self._timers.time() - self._frozen_at
            self._frozen_at = None

    def _note_idleness(self) -> None:
        """One timer is enough: it looks again when calls have been made meanwhile."""
        if self._calls == 0 and self._frozen_at is None:
            self._idle_since = self._timers.time()
            if self._idle is None:
                self._await_idleness(self._limits.idle_seconds)

    def _await_idleness(self, delay: float) -> None:
        if not self._stopped:
            self._idle = self._timers.call_later(delay, self._look)

    def _look(self) -> None:
        self._idle = None
        left = self._idle_since + self._limits.idle_seconds - self._timers.time()
        if self._calls or self._frozen_at is not None:
            return
        if left > 0:
            self._await_idleness(left)
        else:
            self._falling_asleep = asyncio.create_task(self._fall_asleep())

    async def _fall_asleep(self) -> None:
        with suppress(SandboxError):
            async with self._changing:
                if self._calls == 0:
                    await self._freeze()

    def _over(self) -> None:
        self.stop()
        self._expire(f"it has lived for its {self._limits.lifetime_seconds:g} seconds")
