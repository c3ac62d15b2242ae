"""Trials' runs, ordered from the durable service: a killed evaluation goes on with them."""

from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from turnout.core.clock import Clock
from turnout.core.events import ApprovalAsked, Entry, ModelCallIntended, RunResumed
from turnout.core.ids import RunId, ToolCallId
from turnout.core.messages import UserMessage
from turnout.core.service.orders import Answer, Once, Order, OrderLimits
from turnout.core.service.turns import EVALUATIONS, Standing
from turnout.core.tasks import Task
from turnout.errors import StoreError
from turnout.evals.trials.arms import Arm
from turnout.evals.trials.ports import Show, Worked
from turnout.runs.durable.ports import RunDesk, RunEngine
from turnout.runs.summary import Summary

__all__ = ["KEY", "Away", "Nudges", "ServiceRuns", "Wanted", "project_of"]

KEY: Final = "evaluation"
"""Name under which the model calls of trials are charged."""

_ASKED_SECONDS: Final = 5.0
"""That it takes a run at most to wait, once it has asked; a record may tell of older questions."""
_LOOK: Final = 0.05


def project_of(arm: Arm) -> str:
    """Return the project of an arm's runs; usage adds up by it."""
    return f"{EVALUATIONS}{arm.digest[:12]}"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Runs that this process has ordered and waits for: it works on no others."""

    runs: set[RunId] = field(default_factory=set)

    def pick(self, standing: Standing) -> RunId | None:
        """Return the oldest run that waits; None where none does."""
        wanted = [each for each in standing.queued if each.run_id in self.runs]
        return min(wanted, key=lambda each: each.number).run_id if wanted else None


@dataclass(frozen=True, slots=True)
class ServiceRuns:
    """Orders runs from the service, once for each key."""

    desk: RunDesk
    engine: RunEngine
    wanted: Wanted
    limits: OrderLimits
    clock: Clock

    async def work(self, arm: Arm, task: Task, key: str, show: Show) -> Worked:
        """Have a task worked on to its end; the same arm and key are the same run."""
        order = Order(task, project_of(arm), KEY, labels=(arm.name,), limits=self.limits)
        # The key says all that the run is of; where its repository lies may have changed since.
        run_id = (await self.desk.submit(order, Once(key, key))).run.run_id
        self.wanted.runs.add(run_id)
        try:
            await self.engine.enqueue(run_id)
            return await self._followed(order.project, run_id, show)
        finally:
            self.wanted.runs.discard(run_id)

    async def _followed(self, project: str, run_id: RunId, show: Show) -> Worked:
        summary, nudges, away = Summary(), Nudges(), Away()
        async with aclosing(self.desk.follow(project, run_id)) as entries:
            async for entry in entries:
                summary.add(entry)
                nudges.see(entry)
                away.see(entry)
                show(entry)
                if isinstance(entry.event, ApprovalAsked):
                    await self._refuse(project, run_id, entry.event.call.id)
        if summary.result is None:
            raise StoreError(f"Run {run_id} has ended without a record.")
        return Worked(summary.result, nudges.count, away.seconds)

    async def _refuse(self, project: str, run_id: RunId, call: ToolCallId) -> None:
        """Say no to a call that waits for a person, once its run waits."""
        until = self.clock.monotonic() + _ASKED_SECONDS
        while self.clock.monotonic() < until:
            run = await self.desk.get(project, run_id)
            if run.waits_for is not None and run.waits_for.call.id == call:
                answer = Answer(False, KEY, "Nobody is there to decide.", call)
                await self.desk.decide(project, run_id, answer)
                return
            await self.clock.sleep(_LOOK)


@dataclass(slots=True)
class Nudges:
    """Counts what the loop said to a model that had gone astray."""

    count: int = 0
    _spoken: set[str] = field(default_factory=set)
    """Conversations that were opened: what opens one is the task."""

    def see(self, entry: Entry) -> None:
        """Take the next entry in."""
        event = entry.event
        if not isinstance(event, ModelCallIntended) or event.kind != "act":
            return
        if event.conversation in self._spoken:
            self.count += any(isinstance(each, UserMessage) for each in event.messages)
        self._spoken.add(event.conversation)


@dataclass(slots=True)
class Away:
    """Adds up how long nobody worked on a run, between two processes that did."""

    seconds: float = 0.0
    _newest: datetime | None = None

    def see(self, entry: Entry) -> None:
        """Take the next entry in."""
        if isinstance(entry.event, RunResumed) and self._newest is not None:
            self.seconds += max(0.0, (entry.at - self._newest).total_seconds())
        self._newest = entry.at
