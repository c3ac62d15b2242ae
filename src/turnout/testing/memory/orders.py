"""Orders that are kept in memory; they satisfy the same port as those on a database."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from turnout.core.events import ApprovalAsked, ApprovalGiven, Entry, RunEnded
from turnout.core.ids import RunId
from turnout.core.runs import RunState
from turnout.core.service.orders import (
    Answer,
    Head,
    Once,
    Order,
    OrderedRun,
    Publish,
    RunFilter,
    RunPage,
    Sought,
    Submitted,
    cancelled,
    cancelled_words,
)
from turnout.core.service.turns import Claimable, Pick, Standing
from turnout.errors import ConflictError, FullError, NotFoundError
from turnout.testing.stores import MemoryRecordStore

__all__ = ["MemoryOrders"]


@dataclass(slots=True)
class _Kept:
    run_id: RunId
    number: int
    order: Order
    ordered_at: datetime
    waits: ApprovalAsked | None = None
    worker: str = ""
    cancel: bool = False
    served_at: datetime | None = None


@dataclass(slots=True)
class MemoryOrders:
    """Orders by run, beside a record in memory."""

    records: MemoryRecordStore
    clock: Callable[[], float] = lambda: 0.0
    """Stands for the clock of a database."""
    most_queued: int | None = None
    _kept: dict[RunId, _Kept] = field(default_factory=dict)
    _once: dict[tuple[str, str], tuple[str, RunId]] = field(default_factory=dict)
    _published: set[RunId] = field(default_factory=set)
    _beats: dict[str, float] = field(default_factory=dict)

    async def submit(
        self, run_id: RunId, order: Order, at: datetime, once: Once | None = None
    ) -> Submitted:
        """Keep an order as queued; with the same `once` of a project, the run it made before."""
        if once is not None:
            digest, made = self._once.setdefault((order.project, once.key), (once.digest, run_id))
            if digest != once.digest:
                raise ConflictError("The idempotency key was sent before with another request.")
            if made != run_id:
                return Submitted(await self.get(order.project, made), created=False)
        waiting = [run for run in (await self._standing()).queued if run.project == order.project]
        if self.most_queued is not None and len(waiting) >= self.most_queued:
            raise FullError(f"{len(waiting)} runs of project {order.project} wait already.")
        self.records.open_line(run_id, order.task, at)
        self._kept[run_id] = _Kept(run_id, len(self._kept) + 1, order, at)
        return Submitted(await self._run(run_id), created=True)

    async def made(self, project: str, once: Once) -> OrderedRun | None:
        """Return the run that a key of a project stands for; None: it has made none yet."""
        digest, run_id = self._once.get((project, once.key), (once.digest, None))
        if digest != once.digest:
            raise ConflictError("The idempotency key was sent before with another request.")
        return None if run_id is None else await self.get(project, run_id)

    async def get(self, project: str, run_id: RunId) -> OrderedRun:
        """Return a project's run; `NotFoundError` where it has none of that id."""
        if run_id not in self._kept or self._kept[run_id].order.project != project:
            raise NotFoundError(f"There is no run {run_id!r}.")
        return await self._run(run_id)

    async def whose(self, run_id: RunId) -> str | None:
        """Return the project of a run, whoever asks; None where there is no such run."""
        kept = self._kept.get(run_id)
        return None if kept is None else kept.order.project

    async def heads(self, run_ids: Collection[RunId]) -> Mapping[RunId, Head]:
        """Return how far runs are; one that was never ordered is left out."""
        runs = [await self._run(run_id) for run_id in run_ids if run_id in self._kept]
        entries = {run.run_id: await self.records.entries(run.run_id) for run in runs}
        return {run.run_id: Head(len(entries[run.run_id]), run.state) for run in runs}

    async def page(
        self, project: str, wanted: RunFilter, *, before: int | None, limit: int
    ) -> RunPage:
        """Return a project's runs that are wanted, newest first, from before a number."""
        runs = [await self._run(run_id) for run_id in reversed(self._kept)]
        found = [
            run
            for run in runs
            if run.order.project == project
            and (before is None or run.number < before)
            and _is_wanted(run, wanted)
        ]
        return RunPage(tuple(found[:limit]), found[limit - 1].number if found[limit:] else None)

    async def claim(self, worker: str, pick: Pick, at: datetime) -> OrderedRun | None:
        """Give `worker` the run whose turn it is, running and under a new epoch; None: nothing."""
        run_id = pick(await self._standing())
        if run_id is None:
            return None
        kept = self._kept[run_id]
        self._move(run_id, "running", worker)
        kept.served_at = at
        await self.records.take_over(run_id)
        return await self._run(run_id)

    async def release(self, run_id: RunId, epoch: int) -> None:
        """Queue a running run again; nothing is done where the epoch is not its newest."""
        if await _is_running(self.records, run_id, epoch):
            self._move(run_id, "queued")

    async def wait(self, run_id: RunId, epoch: int, asked: ApprovalAsked) -> None:
        """Let a running run wait for a person; nothing is done where the epoch is an older one.

        One that was cancelled meanwhile is queued, so that whoever takes it ends it.
        """
        if await _is_running(self.records, run_id, epoch):
            if self._kept[run_id].cancel:
                self._move(run_id, "queued")
            else:
                self._move(run_id, "waiting", waits=asked)

    async def answer(self, project: str, run_id: RunId, answer: Answer, at: datetime) -> Entry:
        """Put a decision on record and queue the run, in one; `ConflictError`: it does not wait."""
        run = await self.get(project, run_id)
        asked = run.waits_for
        if run.state != "waiting" or asked is None:
            raise ConflictError(f"Run {run_id} waits for no decision.")
        if answer.call_id not in {None, asked.call.id}:
            said = f"waits for a decision on call {asked.call.id}, not on {answer.call_id}"
            raise ConflictError(f"Run {run_id} {said}.")
        given = ApprovalGiven(asked.step, asked.call.id, answer.allowed, answer.by, answer.note)
        self._move(run_id, "queued")
        return await self.records.append(run_id, run.epoch, given, at)

    async def cancel(self, project: str, run_id: RunId, at: datetime, by: str = "") -> OrderedRun:
        """End a run that nobody works on; note the wish where somebody does."""
        run = await self.get(project, run_id)
        if run.state == "ended":
            return run
        if not run.cancel_asked:
            self._kept[run_id].order = cancelled(run.order, by)
        self._kept[run_id].cancel = True
        end = RunEnded("cancelled", f"{cancelled_words(by)} while nobody worked on it.")
        if run.state != "running" and run.started_at is not None:
            await self.records.append(run_id, run.epoch, end, at)
        elif run.state != "running":
            self.records.set_line(run_id, ended_at=at, outcome="cancelled", state="ended")
        return await self._run(run_id)

    async def publish(
        self, project: str, run_id: RunId, wanted: Publish, at: datetime
    ) -> OrderedRun:
        """Note in its order that the diff of a run that has ended is to be published."""
        del at  # when it is due, which nothing in memory asks
        run = await self.get(project, run_id)
        if run.state != "ended":
            raise ConflictError(f"Run {run_id} has not ended.")
        if run_id in self._published:
            raise ConflictError(f"The diff of run {run_id} is published already.")
        self._published.add(run_id)
        kept = self._kept[run_id]
        kept.order = replace(kept.order, later=replace(kept.order.later, publish=wanted))
        return await self._run(run_id)

    async def asked_to_cancel(self, worker: str) -> Sequence[RunId]:
        """Return which of the runs that `worker` has are to be stopped."""
        runs = [await self._run(run_id) for run_id in self._kept]
        return tuple(
            r.run_id for r in runs if (r.state, r.worker) == ("running", worker) and r.cancel_asked
        )

    async def beat(self, worker: str) -> None:
        """Note that a worker lives."""
        self._beats[worker] = self.clock()

    async def leave(self, worker: str) -> None:
        """Forget a worker; the runs that it has are queued."""
        self._beats.pop(worker, None)
        await self._free_of(lambda of: of == worker)

    async def rescue(self, *, stale: float, asker: str) -> Sequence[RunId]:
        """Queue the runs of workers that gave no sign of life for `stale` seconds."""
        since = self.clock() - stale
        self._beats = {w: at for w, at in self._beats.items() if at >= since or w == asker}
        return await self._free_of(lambda of: of != asker and of not in self._beats)

    async def _free_of(self, left: Callable[[str], bool]) -> Sequence[RunId]:
        runs = [await self._run(run_id) for run_id in self._kept]
        found = tuple(run.run_id for run in runs if run.state == "running" and left(run.worker))
        for run_id in found:
            self._move(run_id, "queued")
        return found

    def _move(self, run_id: RunId, state: RunState, worker: str = "", **fields: Any) -> None:
        self._kept[run_id].worker = worker
        self._kept[run_id].waits = fields.get("waits")
        self.records.set_line(run_id, state=state)

    async def _standing(self) -> Standing:
        runs = [await self._run(run_id) for run_id in self._kept]
        queued = [_claimable(run) for run in runs if run.state == "queued"]
        queued.sort(key=lambda each: (each.project, -each.priority, each.number))
        running = [_claimable(run) for run in runs if run.state == "running"]
        last: dict[str, datetime] = {}
        for each in self._kept.values():
            if each.served_at is not None:
                project = each.order.project
                last[project] = max(each.served_at, last.get(project, each.served_at))
        served = sorted(last, key=lambda project: (last[project], project))
        return Standing(queued, running, tuple(served))

    async def _run(self, run_id: RunId) -> OrderedRun:
        kept, row = self._kept[run_id], await self.records.row(run_id)
        begun = bool(await self.records.entries(run_id))
        return OrderedRun(
            run_id=run_id,
            number=kept.number,
            order=kept.order,
            state=row.state or "ended",
            epoch=row.epoch,
            ordered_at=kept.ordered_at,
            started_at=row.started_at if begun else None,
            ended_at=row.ended_at,
            outcome=row.outcome,
            verdict=row.verdict,
            cancel_asked=kept.cancel,
            waits_for=kept.waits if row.state == "waiting" else None,
            worker=kept.worker if row.state == "running" else "",
        )


async def _is_running(records: MemoryRecordStore, run_id: RunId, epoch: int) -> bool:
    row = await records.row(run_id)
    return row.state == "running" and row.epoch == epoch


def _is_wanted(run: OrderedRun, wanted: RunFilter) -> bool:
    return (
        (not wanted.states or run.state in wanted.states)
        and wanted.outcome in {None, run.outcome}
        and wanted.verdict in {None, run.verdict}
        and wanted.repository in {None, run.order.task.repository}
        and (wanted.label is None or wanted.label in run.order.labels)
        and all(_says(run, sought) for sought in wanted.sought)
    )


def _says(run: OrderedRun, sought: Sought) -> bool:
    begun = tuple(each for each in sought.beginnings if each)
    called = run.run_id.startswith(begun) or run.run_id.endswith(sought.ending or "\0")
    return called or sought.word in run.order.task.prompt.lower()


def _claimable(run: OrderedRun) -> Claimable:
    task = run.order.task
    return Claimable(run.run_id, run.order.project, task.repository, run.order.priority, run.number)
