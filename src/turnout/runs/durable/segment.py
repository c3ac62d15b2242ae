"""One segment of a run: from where its record ends to its end, a question or a hand-over."""

import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Final

from turnout.core.clock import Clock
from turnout.core.events import (
    ApprovalAsked,
    ApprovalGiven,
    Entry,
    RunEnded,
    RunResumed,
    RunStarted,
)
from turnout.core.service.orders import Order, OrderedRun, cancelled_words
from turnout.core.tasks import Task
from turnout.errors import StaleEpochError, UnfitError, UsageError
from turnout.runs.durable.patience import PatientClient
from turnout.runs.durable.ports import OrderStore
from turnout.runs.intake import Intake, Resolve, take_in, told_with
from turnout.runs.ports import ModelAccess, RecordStore
from turnout.runs.record import Recorder
from turnout.runs.stop import ParkedError, Stop
from turnout.runs.worker import RunWorker, Workshop
from turnout.runs.worker.past import Past, past_of

__all__ = ["Outfit", "Outfitter", "Segments"]

_IN_VAIN: Final = 5
"""Workers in a row that come to nothing: another one would not either."""
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Outfit:
    """What one order is worked on with."""

    shop: Workshop
    access: ModelAccess
    """Charged to whoever ordered."""


Outfitter = Callable[[Order], AbstractAsyncContextManager[Outfit]]
"""Makes it ready; `UnfitError` or `ConfigError` where that cannot be."""


async def _leave_it(place: str, commit: str) -> None:
    """Leave it to whoever makes the base."""


class _Nobody:
    """Lets a run wait outside of any process for who decides."""

    async def decide(self, asked: ApprovalAsked) -> ApprovalGiven:
        """Leave the run until somebody has decided."""
        raise ParkedError(asked)


@dataclass(frozen=True, slots=True)
class Segments:
    """Works on runs, each from where its record ends."""

    orders: OrderStore
    records: RecordStore
    outfit: Outfitter
    resolve: Resolve
    locate: Callable[[str], str]
    """Returns the path or URL of a repository; `UsageError` for one that may not be used."""
    clock: Clock
    publish: Callable[[Entry], None]
    fetch: Callable[[str, str], Awaitable[None]] = _leave_it
    """Has a commit of a place here, where a sandbox's base could not be made from it otherwise."""
    hide: Callable[[str], str] = str
    """Takes out of a text where things are on this machine: callers read what is recorded."""

    async def work(self, run: OrderedRun, stop: Stop) -> None:
        """Work on a run that was claimed until it ends, must wait or is to be left to another.

        Which of these came is in the store then. Errors of the store come out, and so does
        cancellation: the run is as it was when its newest event was committed.
        """
        past = past_of(await self.records.entries(run.run_id))
        recorder = Recorder(
            self.records,
            run.run_id,
            self.clock,
            self.publish,
            epoch=run.epoch,
            is_known=past.has,
            told=told_with(self.hide),
        )
        try:
            await self._go_on(run, past, recorder, stop)
        except ParkedError as parked:
            if parked.asked is None:
                await self.orders.release(run.run_id, run.epoch)
            else:
                await self.orders.wait(run.run_id, run.epoch, parked.asked)
        except StaleEpochError:
            _LOG.warning("%s was taken over from %s.", run.run_id, run.worker)

    async def _go_on(self, run: OrderedRun, past: Past, recorder: Recorder, stop: Stop) -> None:
        if past.in_vain >= _IN_VAIN:
            reason = f"{past.in_vain} workers in a row have come to nothing with it."
            await recorder.add(RunEnded("failed", reason))
            return
        if run.cancel_asked:
            stop.ask(f"{cancelled_words(run.order.later.cancelled_by)}.")
        if past.started is not None:
            await recorder.add(RunResumed(past.segments + 1, run.worker))
        try:
            async with self.outfit(run.order) as outfit:
                task = replace(run.order.task, repository=self.locate(run.order.task.repository))
                await self._work(run, past, recorder, stop, outfit, task)
        except (UnfitError, UsageError) as error:
            await self._fail(run, recorder, str(error))

    async def _work(
        self,
        run: OrderedRun,
        past: Past,
        recorder: Recorder,
        stop: Stop,
        outfit: Outfit,
        task: Task,
    ) -> None:
        if past.started is None:
            intake = await take_in(task, self.resolve, outfit.shop.compare)
            shown = replace(run.order.task, review=intake.task.review)
            started = RunStarted(shown, intake.commit, outfit.access.strategy)
            await recorder.add(started)
        else:
            started = past.started
            task = replace(task, review=started.task.review)
            intake = Intake(task, started.base_commit, ())
        await self.fetch(task.repository, intake.commit)
        client = PatientClient(outfit.access.client, self.clock)
        access = replace(outfit.access, client=client, strategy=started.strategy)
        worker = RunWorker(outfit.shop, access, recorder, stop, _Nobody(), past)
        await worker.work(intake)

    async def _fail(self, run: OrderedRun, recorder: Recorder, reason: str) -> None:
        """End a run that cannot be worked on, unless its worker has said so already."""
        _LOG.warning("%s cannot be worked on: %s", run.run_id, reason)
        entries = await self.records.entries(run.run_id)
        if any(isinstance(entry.event, RunEnded) for entry in entries):
            return
        if not entries:
            await recorder.add(RunStarted(run.order.task, "", "loop"))
        await recorder.add(RunEnded("failed", reason))
