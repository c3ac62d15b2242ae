"""Tells of runs that begin, wait and end, after it is on record."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from turnout.core.clock import Clock
from turnout.core.events import ReviewDecision
from turnout.core.govern.happenings import (
    Happening,
    decision_of,
    run_ended,
    run_started,
    run_waiting,
)
from turnout.core.service.orders import OrderedRun
from turnout.runs.durable.engine import Work
from turnout.runs.durable.ports import OrderStore
from turnout.runs.ports import RecordStore
from turnout.runs.stop import Stop

__all__ = ["Announcer", "Tell", "tell_nobody"]

Tell = Callable[[Happening], Awaitable[None]]
"""Is told of what happened, which is written down already, with whom it has to be sent to."""


async def tell_nobody(happening: Happening) -> None:
    """Let it pass."""
    del happening


@dataclass(frozen=True, slots=True)
class Announcer:
    """Tells where runs stand."""

    orders: OrderStore
    records: RecordStore
    clock: Clock
    tell: Tell

    def of(self, work: Work) -> Work:
        """Return work that tells of its segment: that the run begins, and what it comes to."""

        async def told(run: OrderedRun, stop: Stop) -> None:
            if run.started_at is None:
                await self.tell(run_started(self.clock.now(), run))
            await work(run, stop)
            await self.stands(await self.orders.get(run.order.project, run.run_id))

        return told

    async def stands(self, run: OrderedRun) -> None:
        """Tell of a run that waits or has ended."""
        now = self.clock.now()
        if run.state == "waiting" and run.waits_for is not None:
            await self.tell(run_waiting(now, run, run.waits_for))
        elif run.state == "ended":
            await self.tell(run_ended(now, run, await self._decision(run)))

    async def _decision(self, run: OrderedRun) -> ReviewDecision | None:
        """Return what a review has come to; None for runs of another kind."""
        if run.order.task.review is None:
            return None
        return decision_of(entry.event for entry in await self.records.entries(run.run_id))
