"""Segments as tasks of this process; the store holds all that must outlive it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from turnout.core.clock import Clock
from turnout.core.events import RunEnded
from turnout.core.ids import RunId
from turnout.core.service.orders import OrderedRun, cancelled_words
from turnout.core.service.turns import Pick
from turnout.errors import StoreError
from turnout.runs.durable.ports import OrderStore
from turnout.runs.ports import RecordStore
from turnout.runs.stop import Stop

__all__ = ["Pace", "TaskEngine", "Work", "Worker"]

Work = Callable[[OrderedRun, Stop], Awaitable[None]]
"""Works on one segment to its end."""

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a worker does what, in seconds."""

    beat: float = 1.0
    """Between its signs of life."""
    stale: float = 5.0
    """Without one, after which others take its runs over."""
    look: float = 1.0
    """Between looks for runs that nobody told it of."""
    grace: float = 30.0
    """For calls under way, when it is to end."""


@dataclass(frozen=True, slots=True)
class Worker:
    """What one process does of the service's work."""

    name: str
    """No other worker has it, nor had."""
    most: int = 2
    """Segments that it works on at once."""
    alone: bool = False
    """No other worker can be alive."""
    pace: Pace = field(default_factory=Pace)


@dataclass(frozen=True, slots=True)
class _Segment:
    run: OrderedRun
    stop: Stop
    task: "asyncio.Task[None]"


class TaskEngine:
    """A worker that claims runs and works on some at once; `async with` starts and drains it.

    Whoever dies leaves its runs to the others: they see that its signs of life have stopped, by the
    clock of the database. After an outage all look dead, so that nobody takes anything over until
    its own signs have come through for as long as it takes to look dead.
    """

    def __init__(
        self,
        orders: OrderStore,
        records: RecordStore,
        work: Work,
        pick: Pick,
        clock: Clock,
        worker: Worker,
    ) -> None:
        self.worker = worker.name
        self._orders = orders
        self._records = records
        self._work = work
        self._pick = pick
        self._clock = clock
        self._most = worker.most
        self._alone = worker.alone
        self._pace = worker.pace
        self._segments: dict[RunId, _Segment] = {}
        self._woken = asyncio.Event()
        self._draining = False
        self._healthy_since: float | None = None
        self._beat_at: float | None = None
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        self._claiming: asyncio.Task[OrderedRun | None] | None = None

    async def __aenter__(self) -> Self:
        await self._orders.beat(self.worker)
        if self._alone:
            await self._orders.rescue(stale=-1.0, asker=self.worker)
        self._tasks = (asyncio.create_task(self._claim_all()), asyncio.create_task(self._live()))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.drain()

    @property
    def under_way(self) -> tuple[RunId, ...]:
        """The runs that are worked on here."""
        return tuple(self._segments)

    @property
    def healthy(self) -> bool:
        """Whether the newest sign of life came through."""
        return self._healthy_since is not None

    async def enqueue(self, run_id: RunId) -> None:
        """Look for runs at once."""
        _LOG.debug("%s is queued", run_id)
        self.wake()

    def wake(self) -> None:
        """Look for runs at once; only on the event loop."""
        self._woken.set()

    async def cancel(self, run_id: RunId) -> None:
        """Stop a run that is worked on here after the step under way."""
        segment = self._segments.get(run_id)
        if segment is None or segment.stop.asked:
            return
        run = segment.run
        with suppress(StoreError):
            run = await self._orders.get(run.order.project, run_id)
        if not segment.stop.asked:
            segment.stop.ask(f"{cancelled_words(run.order.later.cancelled_by)}.")

    async def drain(self) -> None:
        """Begin nothing more, let calls under way end, and leave all runs to other workers."""
        self._draining = True
        for task in self._tasks:
            task.cancel()
        for segment in self._segments.values():
            segment.stop.park()
        working = {segment.task for segment in self._segments.values()}
        if working:
            _, late = await asyncio.wait(working, timeout=self._pace.grace)
            for task in late:
                task.cancel()
            await asyncio.gather(*working, return_exceptions=True)
        claiming = () if self._claiming is None else (self._claiming,)
        await asyncio.gather(*self._tasks, *claiming, return_exceptions=True)
        # Where the store is away, others see that no sign of life comes any more.
        with suppress(StoreError):
            await self._orders.leave(self.worker)

    async def _claim_all(self) -> None:
        while True:
            self._woken.clear()
            try:
                claimed = await self._claim()
            except StoreError as error:
                _LOG.warning("No run can be claimed: %s", error)
                claimed = None
            if claimed is None:
                await self._wait()

    async def _claim(self) -> OrderedRun | None:
        if len(self._segments) >= self._most:
            return None
        # Whoever ends this loop waits for a claim under way: it may have been granted.
        self._claiming = asyncio.create_task(self._claim_one())
        return await asyncio.shield(self._claiming)

    async def _claim_one(self) -> OrderedRun | None:
        run = await self._orders.claim(self.worker, self._pick, self._clock.now())
        if run is not None and not self._draining:
            stop = Stop()
            task = asyncio.create_task(self._segment(run, stop))
            self._segments[run.run_id] = _Segment(run, stop, task)
        return run

    async def _wait(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._pace.look):
                await self._woken.wait()

    async def _segment(self, run: OrderedRun, stop: Stop) -> None:
        work = asyncio.ensure_future(self._work(run, stop))
        try:
            await asyncio.wait({work})
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            self._segments.pop(run.run_id, None)
            self._woken.set()
        if not work.cancelled() and (error := work.exception()) is not None:
            await self._after(run, error)

    async def _after(self, run: OrderedRun, error: BaseException) -> None:
        """Give back a run whose store failed; end one that a defect of ours has stopped."""
        _LOG.error("A segment of %s ended: %s", run.run_id, error, exc_info=error)
        pause = 0.1
        while True:
            try:
                if isinstance(error, StoreError):
                    await self._orders.release(run.run_id, run.epoch)
                else:
                    end = RunEnded("failed", "A defect of Turnout ended the run.")
                    await self._records.append(run.run_id, run.epoch, end, self._clock.now())
            except StoreError:
                if not isinstance(error, StoreError):
                    return
                await self._clock.sleep(pause)
                pause = min(2.0 * pause, 5.0)
            else:
                self._woken.set()
                return

    async def _live(self) -> None:
        while True:
            try:
                await self._beat()
            except StoreError as error:
                self._healthy_since = None
                _LOG.warning("No sign of life comes through: %s", error)
            await self._clock.sleep(self._pace.beat)

    async def _beat(self) -> None:
        await self._orders.beat(self.worker)
        now = self._clock.monotonic()
        if self._beat_at is None or now - self._beat_at > self._pace.stale:
            self._healthy_since = None
        if self._healthy_since is None:
            self._healthy_since = now
        self._beat_at = now
        for run_id in await self._orders.asked_to_cancel(self.worker):
            await self.cancel(run_id)
        if now - self._healthy_since >= self._pace.stale:
            saved = await self._orders.rescue(stale=self._pace.stale, asker=self.worker)
            if saved:
                _LOG.warning("Taken over from workers that are gone: %s", ", ".join(saved))
                self._woken.set()
