"""Tells those who follow runs that something was committed, at the cost of one query for all."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from turnout.core.clock import Clock
from turnout.core.events import Entry
from turnout.core.ids import RunId
from turnout.core.service.orders import Head
from turnout.errors import StoreError
from turnout.runs.durable.ports import OrderStore
from turnout.runs.ports import RecordStore

__all__ = ["Following"]

_EVERY: Final = 0.25
"""Seconds between looks at what other processes have committed."""
_AT_ONCE: Final = 500
"""Runs in one query."""


class Following:
    """One task looks for all that is followed; `async with` starts it and ends it."""

    def __init__(self, orders: OrderStore, records: RecordStore, clock: Clock) -> None:
        self._orders = orders
        self._records = records
        self._clock = clock
        self._watched: dict[RunId, set[asyncio.Event]] = {}
        self._known: dict[RunId, Head] = {}
        self._some = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._looking = asyncio.create_task(self._look())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait({self._looking})

    def wake(self, run_id: RunId) -> None:
        """Let those who follow a run look at once: this process has committed something."""
        for woken in self._watched.get(run_id, ()):
            woken.set()

    async def entries(self, run_id: RunId, *, after: int = 0) -> AsyncGenerator[Entry, None]:
        """Yield a run's entries from after `after` as they are committed, until it has ended."""
        woken = asyncio.Event()
        self._watched.setdefault(run_id, set()).add(woken)
        self._some.set()
        try:
            while True:
                woken.clear()
                head = (await self._orders.heads([run_id])).get(run_id)
                if head is None:
                    return
                if head.last_seq > after:
                    for entry in await self._records.entries(run_id, after=after):
                        after = entry.seq
                        yield entry
                elif head.state == "ended":
                    return
                else:
                    await woken.wait()
        finally:
            self._leave(run_id, woken)

    async def heads(self, run_id: RunId) -> AsyncGenerator[Head, None]:
        """Yield how far a run is, now and whenever that changes, until it has ended."""
        woken, known = asyncio.Event(), None
        self._watched.setdefault(run_id, set()).add(woken)
        self._some.set()
        try:
            while True:
                woken.clear()
                head = (await self._orders.heads([run_id])).get(run_id)
                if head is None:
                    return
                if head == known:
                    await woken.wait()
                    continue
                known = head
                yield head
                if head.state == "ended":
                    return
        finally:
            self._leave(run_id, woken)

    def _leave(self, run_id: RunId, woken: asyncio.Event) -> None:
        others = self._watched[run_id]
        others.discard(woken)
        if not others:
            del self._watched[run_id]
            self._known.pop(run_id, None)

    async def _look(self) -> None:
        while True:
            await self._some.wait()
            await self._clock.sleep(_EVERY)
            if not self._watched:
                self._some.clear()
            # What cannot be read now is read with the next look.
            with suppress(StoreError):
                await self._compare(tuple(self._watched))

    async def _compare(self, followed: Sequence[RunId]) -> None:
        for start in range(0, len(followed), _AT_ONCE):
            part = followed[start : start + _AT_ONCE]
            for run_id, head in (await self._orders.heads(part)).items():
                if run_id in self._watched and self._known.get(run_id) != head:
                    self._known[run_id] = head
                    self.wake(run_id)
