"""Containers that were started ahead, so that a run need not wait for one."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from turnout.errors import TurnoutError
from turnout.sandbox.base import BaseRef, Limits
from turnout.sandbox.channel import Channel
from turnout.sandbox.container.held import Held

__all__ = ["Wanted", "WarmShelf"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a container is made for."""

    base: BaseRef
    limits: Limits


class _Ready:
    """A container that nobody uses yet."""

    def __init__(self, channel: Channel, held: Held) -> None:
        self.channel = channel
        self.held = held
        self.alive = True
        channel.when_ended(self._ended)

    def _ended(self) -> None:
        self.alive = False

    async def release(self) -> None:
        """Remove it."""
        self.channel.end("it was not needed")
        await self.channel.closed()
        await self.held.release()


class WarmShelf:
    """Keeps some containers ready for each of the last things that were wanted.

    One that was claimed is its run's alone and never comes back.
    """

    def __init__(
        self, each: int, kinds: int, start: Callable[[Wanted], Awaitable[tuple[Channel, Held]]]
    ) -> None:
        self._each = each
        self._kinds = kinds
        self._start = start
        self._ready: OrderedDict[Wanted, list[_Ready]] = OrderedDict()
        self._starting: dict[Wanted, asyncio.Task[None]] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._closed = False

    def claim(self, wanted: Wanted) -> tuple[Channel, Held] | None:
        """Take one that is ready, if any, and see to it that others will be."""
        if not self._each or self._closed:
            return None
        ready = self._ready.setdefault(wanted, [])
        self._ready.move_to_end(wanted)
        while len(self._ready) > self._kinds:
            self._drop(next(iter(self._ready)))
        found: _Ready | None = None
        while ready and found is None:
            first = ready.pop(0)
            if first.alive:
                found = first
            else:
                self._remove(first)
        self._refill(wanted)
        return None if found is None else (found.channel, found.held)

    async def filled(self, wanted: Wanted) -> None:
        """Wait until as many are ready as are wanted, or one cannot be started."""
        if self._each and not self._closed:
            self._ready.setdefault(wanted, [])
            self._refill(wanted)
            await asyncio.wait([self._starting[wanted]])

    async def close(self) -> None:
        """Remove all of them; none is started any more."""
        self._closed = True
        for starting in self._starting.values():
            starting.cancel()
        if self._starting:
            await asyncio.wait(self._starting.values())
        for wanted in list(self._ready):
            self._drop(wanted)
        if self._leaving:
            await asyncio.wait(self._leaving)

    def _refill(self, wanted: Wanted) -> None:
        running = self._starting.get(wanted)
        if running is None or running.done():
            self._starting[wanted] = asyncio.create_task(self._fill(wanted))

    async def _fill(self, wanted: Wanted) -> None:
        """Start one after the other; who wants one meanwhile learns himself why none is there."""
        while wanted in self._ready and len(self._ready[wanted]) < self._each:
            try:
                made = _Ready(*await self._start(wanted))
            except (TurnoutError, OSError):
                return
            if wanted in self._ready:
                self._ready[wanted].append(made)
            else:
                self._remove(made)

    def _drop(self, wanted: Wanted) -> None:
        for each in self._ready.pop(wanted):
            self._remove(each)

    def _remove(self, ready: _Ready) -> None:
        leaving = asyncio.create_task(ready.release())
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)
