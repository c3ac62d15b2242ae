"""Orders of the service, and where their runs stand."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    Connection,
    RowMapping,
    Select,
    bindparam,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from turnout.core.events import (
    ApprovalAsked,
    ApprovalGiven,
    Entry,
    RunEnded,
    encode_event,
)
from turnout.core.govern.happenings import run_ended, run_started, run_waiting
from turnout.core.ids import RunId
from turnout.core.secrecy.redactor import Redactor
from turnout.core.service.orders import (
    Answer,
    Head,
    Once,
    Order,
    OrderedRun,
    Publish,
    RunFilter,
    RunPage,
    Submitted,
    cancelled,
    cancelled_words,
)
from turnout.core.service.turns import Claimable, Pick, Standing
from turnout.errors import ConflictError, FullError
from turnout.store.bell import ring
from turnout.store.database import Database
from turnout.store.dialects import insert_or_replace, seconds_now, serialise
from turnout.store.happenings import record
from turnout.store.ordered import ORDERED, encode_order, one, ordered
from turnout.store.publications import add_publication, ask_publication
from turnout.store.record import append_events, line_of
from turnout.store.schema import events, order_labels, orders, runs, workers

__all__ = ["OrdersStore"]

_TURNS: Final = 7_217_001
"""Lock of whoever changes whose turn it is."""
_OF_EACH: Final = 64
"""Runs of each project that are looked at when a turn is given."""

_ONCE = ORDERED.where(
    orders.c.project == bindparam("of_project"), orders.c.once_key == bindparam("of_key")
)
_CLAIMABLE = select(
    orders.c.run_id, orders.c.project, orders.c.repository, orders.c.priority, runs.c.number
).join_from(orders, runs)
_RUNNING = _CLAIMABLE.where(orders.c.state == "running")
_PLACED = (
    _CLAIMABLE.add_columns(
        func.row_number()
        .over(
            partition_by=orders.c.project,
            order_by=(orders.c.priority.desc(), runs.c.number),
        )
        .label("place")
    )
    .where(orders.c.state == "queued")
    .subquery()
)
_QUEUED = select(_PLACED).where(_PLACED.c.place <= _OF_EACH)
_SERVED = (
    select(orders.c.project)
    .where(orders.c.served_at.is_not(None))
    .group_by(orders.c.project)
    .order_by(func.max(orders.c.served_at), orders.c.project)
)
_WAITING = select(func.count()).where(
    orders.c.project == bindparam("of_project"), orders.c.state == "queued"
)
_CHANGE = update(orders).where(orders.c.run_id == bindparam("run"))
_NEWEST_AT = select(func.max(events.c.at)).where(events.c.run_id == bindparam("run"))
_NEW_EPOCH = update(runs).where(runs.c.run_id == bindparam("run")).values(epoch=runs.c.epoch + 1)
_FREE: Final[dict[str, Any]] = {"state": "queued", "worker": ""}
_LEFT = (
    select(orders.c.run_id, orders.c.worker)
    .outerjoin(workers, workers.c.worker == orders.c.worker)
    .where(
        orders.c.state == "running",
        (workers.c.beat.is_(None)) | (workers.c.beat < bindparam("since")),
        orders.c.worker != bindparam("but"),
    )
)


_HEADS = (
    select(orders.c.run_id, orders.c.state, runs.c.last_seq)
    .join_from(orders, runs)
    .where(orders.c.run_id.in_(bindparam("wanted", expanding=True)))
)


class OrdersStore:
    """Orders and where their runs stand, in step with the record."""

    def __init__(
        self,
        database: Database,
        *,
        most_queued: int | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        """`most_queued`: runs of one project that may wait to begin.

        `redactor` takes out of what people write what nobody may read.
        """
        self._database = database
        self._most_queued = most_queued
        self._redactor = redactor or Redactor()

    async def submit(
        self, run_id: RunId, order: Order, at: datetime, once: Once | None = None
    ) -> Submitted:
        """Keep an order as queued; with the same `once` of a project, the run it made before.

        `ConflictError` where the key of `once` stands for another request, `FullError` where no
        more of the project's runs may wait.
        """

        def work(connection: Connection) -> Submitted:
            serialise(connection, _TURNS)
            if once is not None:
                earlier = _made_by(connection, order.project, once)
                if earlier is not None:
                    return Submitted(earlier, created=False)
            if self._most_queued is not None:
                _check_room(connection, order.project, self._most_queued)
            _insert(connection, run_id, self._told(order), at, once)
            ring(connection)
            return Submitted(one(connection, run_id), created=True)

        return await self._database.write(work)

    async def made(self, project: str, once: Once) -> OrderedRun | None:
        """Return the run that a key of a project stands for; None: it has made none yet.

        `ConflictError` where it stands for another request.
        """
        return await self._database.read(lambda connection: _made_by(connection, project, once))

    async def get(self, project: str, run_id: RunId) -> OrderedRun:
        """Return a project's run; `NotFoundError` where it has none of that id."""
        return await self._database.read(lambda connection: one(connection, run_id, project))

    async def whose(self, run_id: RunId) -> str | None:
        """Return the project of a run, whoever asks; None where there is no such run."""
        wanted = select(orders.c.project).where(orders.c.run_id == run_id)
        found: str | None = await self._database.read(lambda connection: connection.scalar(wanted))
        return found

    async def heads(self, run_ids: Collection[RunId]) -> Mapping[RunId, Head]:
        """Return how far runs are; one that was never ordered is left out."""
        asked = {"wanted": list(run_ids)}
        rows = await self._database.read(lambda connection: connection.execute(_HEADS, asked).all())
        return {RunId(row.run_id): Head(row.last_seq, row.state) for row in rows}

    async def page(
        self, project: str, wanted: RunFilter, *, before: int | None, limit: int
    ) -> RunPage:
        """Return a project's runs that are wanted, newest first, from before a number."""
        statement = _filtered(ORDERED.where(orders.c.project == project), wanted)
        if before is not None:
            statement = statement.where(runs.c.number < before)
        statement = statement.order_by(runs.c.number.desc()).limit(limit + 1)
        rows = await self._database.read(
            lambda connection: connection.execute(statement).mappings().all()
        )
        found = tuple(map(ordered, rows[:limit]))
        return RunPage(found, found[-1].number if len(rows) > limit else None)

    async def claim(self, worker: str, pick: Pick, at: datetime) -> OrderedRun | None:
        """Give `worker` the run whose turn it is, running and under a new epoch; None: nothing."""

        def work(connection: Connection) -> OrderedRun | None:
            serialise(connection, _TURNS)
            run_id = pick(_standing(connection))
            if run_id is None:
                return None
            line_of(connection, run_id, lock=True)
            changes = {"state": "running", "worker": worker, "served_at": at, "waits": None}
            queued = _CHANGE.where(orders.c.state == "queued")
            if not connection.execute(queued, {"run": run_id, **changes}).rowcount:
                return None
            connection.execute(_NEW_EPOCH, {"run": run_id})
            run = one(connection, run_id)
            if run.started_at is None:
                record(connection, (run_started(at, run),))
            return run

        return await self._database.write(work)

    async def release(self, run_id: RunId, epoch: int) -> None:
        """Queue a running run again; nothing is done where the epoch is not its newest."""
        await self._leave_running(run_id, epoch, _FREE, ring)

    async def wait(self, run_id: RunId, epoch: int, asked: ApprovalAsked) -> None:
        """Let a running run wait for a person; nothing is done where the epoch is an older one.

        One that was cancelled meanwhile is queued, so that whoever takes it ends it.
        """
        waits = {"state": "waiting", "worker": "", "waits": encode_event(asked)}

        def tell(connection: Connection) -> None:
            if one(connection, run_id).cancel_asked:
                connection.execute(_CHANGE, {"run": run_id, "waits": None, **_FREE})
                ring(connection)
                return
            at = connection.scalar(_NEWEST_AT, {"run": run_id})
            if at is not None:
                record(connection, (run_waiting(at, one(connection, run_id), asked),))

        await self._leave_running(run_id, epoch, waits, tell)

    async def answer(self, project: str, run_id: RunId, answer: Answer, at: datetime) -> Entry:
        """Put a decision on record and queue the run, in one; `ConflictError`: it does not wait."""

        def work(connection: Connection) -> Entry:
            one(connection, run_id, project)
            line_of(connection, run_id, lock=True)
            run = one(connection, run_id)
            asked = run.waits_for
            if run.state != "waiting" or asked is None:
                raise ConflictError(f"Run {run_id} waits for no decision.")
            if answer.call_id not in {None, asked.call.id}:
                said = f"waits for a decision on call {asked.call.id}, not on {answer.call_id}"
                raise ConflictError(f"Run {run_id} {said}.")
            note = self._redactor.text(answer.note)
            given = ApprovalGiven(asked.step, asked.call.id, answer.allowed, answer.by, note)
            (entry,) = append_events(connection, run_id, run.epoch, (given,), at)
            connection.execute(_CHANGE, {"run": run_id, "waits": None, **_FREE})
            ring(connection)
            return entry

        return await self._database.write(work)

    async def cancel(self, project: str, run_id: RunId, at: datetime, by: str = "") -> OrderedRun:
        """End a run that nobody works on; note the wish, and whose it is, where somebody does.

        A run that has ended stays as it is; of two wishes the first counts.
        """
        end = RunEnded("cancelled", f"{cancelled_words(by)} while nobody worked on it.")

        def work(connection: Connection) -> OrderedRun:
            # First of all: nothing tells a run of another project from one that never was.
            one(connection, run_id, project)
            line = line_of(connection, run_id, lock=True)
            run = one(connection, run_id)
            if run.state == "ended":
                return run
            wish: dict[str, Any] = {"cancel": 1}
            if not run.cancel_asked:
                wish |= {"payload": encode_order(cancelled(run.order, by))}
            connection.execute(_CHANGE, {"run": run_id, **wish})
            if run.state != "running":
                if line["last_seq"]:
                    append_events(connection, run_id, run.epoch, (end,), at)
                else:
                    _end_unbegun(connection, run_id, end, at)
            return one(connection, run_id)

        return await self._database.write(work)

    async def publish(
        self, project: str, run_id: RunId, wanted: Publish, at: datetime
    ) -> OrderedRun:
        """Have the diff of a run that has ended published.

        `ConflictError` where the run has not ended, or that was done before.
        """

        def work(connection: Connection) -> OrderedRun:
            one(connection, run_id, project)
            line_of(connection, run_id, lock=True)
            run = one(connection, run_id)
            if run.state != "ended":
                raise ConflictError(f"Run {run_id} has not ended.", mend="Wait for its end.")
            order = replace(run.order, later=replace(run.order.later, publish=wanted))
            connection.execute(_CHANGE, {"run": run_id, "payload": encode_order(order)})
            ask_publication(connection, run_id, order, at)
            return one(connection, run_id)

        return await self._database.write(work)

    async def asked_to_cancel(self, worker: str) -> Sequence[RunId]:
        """Return which of the runs that `worker` has are to be stopped."""
        wanted = select(orders.c.run_id).where(
            orders.c.worker == worker, orders.c.state == "running", orders.c.cancel == 1
        )
        found = await self._database.read(lambda connection: connection.scalars(wanted).all())
        return tuple(map(RunId, found))

    async def beat(self, worker: str) -> None:
        """Note by the database's clock that a worker lives."""
        await self._database.write(
            lambda connection: insert_or_replace(
                connection, workers, [{"worker": worker, "beat": seconds_now(connection)}]
            ),
            relaxed=True,
        )

    async def leave(self, worker: str) -> None:
        """Forget a worker; the runs that it has are queued."""
        left = update(orders).where(orders.c.worker == worker, orders.c.state == "running")
        gone = delete(workers).where(workers.c.worker == worker)

        def work(connection: Connection) -> None:
            connection.execute(left.values(**_FREE))
            connection.execute(gone)
            ring(connection)

        await self._database.write(work)

    async def rescue(self, *, stale: float, asker: str) -> Sequence[RunId]:
        """Queue the runs of workers that gave no sign of life for `stale` seconds.

        By the database's clock; those of the `asker` are left alone.
        """

        def work(connection: Connection) -> Sequence[RunId]:
            serialise(connection, _TURNS)
            since = {"since": seconds_now(connection) - stale, "but": asker}
            left = connection.execute(_LEFT, since).all()
            freed = tuple(RunId(r.run_id) for r in left if _free(connection, r.run_id, r.worker))
            connection.execute(
                delete(workers).where(workers.c.beat < since["since"], workers.c.worker != asker)
            )
            return freed

        return await self._database.write(work)

    def _told(self, order: Order) -> Order:
        task, text = order.task, self._redactor.text
        command = None if task.test_command is None else text(task.test_command)
        return replace(order, task=replace(task, prompt=text(task.prompt), test_command=command))

    async def _leave_running(
        self,
        run_id: RunId,
        epoch: int,
        changes: dict[str, Any],
        tell: Callable[[Connection], None] | None = None,
    ) -> None:
        def work(connection: Connection) -> None:
            line = line_of(connection, run_id, lock=True)
            if line["epoch"] == epoch and line["ended_at"] is None:
                running = _CHANGE.where(orders.c.state == "running")
                changed = connection.execute(running, {"run": run_id, **changes}).rowcount
                if changed and tell is not None:
                    tell(connection)

        await self._database.write(work)


def _free(connection: Connection, run_id: str, worker: str) -> bool:
    """Queue a run that `worker` had; False where it has it no longer."""
    line_of(connection, RunId(run_id), lock=True)
    had = _CHANGE.where(orders.c.state == "running", orders.c.worker == worker)
    return bool(connection.execute(had, {"run": run_id, **_FREE}).rowcount)


def _insert(
    connection: Connection, run_id: RunId, order: Order, at: datetime, once: Once | None
) -> None:
    task = order.task
    line = {
        "run_id": run_id,
        "prompt": task.prompt,
        "repository": task.repository,
        "base_commit": "",
        "started_at": at,
        "epoch": 0,
        "last_seq": 0,
    }
    kept = {
        "run_id": run_id,
        "project": order.project,
        "repository": task.repository,
        "priority": order.priority,
        "payload": encode_order(order),
        "ordered_at": at,
        "state": "queued",
        "worker": "",
        "cancel": 0,
        "once_key": once.key if once else None,
        "once_digest": once.digest if once else None,
    }
    connection.execute(insert(runs), line)
    connection.execute(insert(orders), kept)
    labels = [{"run_id": run_id, "label": label} for label in dict.fromkeys(order.labels)]
    if labels:
        connection.execute(insert(order_labels), labels)
    add_publication(connection, run_id, order, at)


def _check_room(connection: Connection, project: str, most: int) -> None:
    queued = connection.scalar(_WAITING, {"of_project": project}) or 0
    if queued >= most:
        raise FullError(
            f"{queued} runs of project {project} wait to begin already.",
            mend="Order it again when some of them have begun.",
        )


def _made_by(connection: Connection, project: str, once: Once) -> OrderedRun | None:
    asked = {"of_project": project, "of_key": once.key}
    row = connection.execute(_ONCE, asked).mappings().first()
    if row is None:
        return None
    if row["once_digest"] != once.digest:
        raise ConflictError(
            "The idempotency key was sent before with another request.",
            mend="Send a new key with each new request.",
        )
    return ordered(row)


def _standing(connection: Connection) -> Standing:
    queued = connection.execute(_QUEUED.order_by(_PLACED.c.project, _PLACED.c.place)).mappings()
    running = connection.execute(_RUNNING).mappings()
    served = connection.scalars(_SERVED).all()
    return Standing(tuple(map(_claimable, queued)), tuple(map(_claimable, running)), tuple(served))


def _claimable(row: RowMapping) -> Claimable:
    return Claimable(
        RunId(row["run_id"]), row["project"], row["repository"], row["priority"], row["number"]
    )


def _end_unbegun(connection: Connection, run_id: RunId, end: RunEnded, at: datetime) -> None:
    ended = update(runs).where(runs.c.run_id == run_id)
    connection.execute(ended.values(ended_at=at, outcome=end.outcome))
    connection.execute(_CHANGE, {"run": run_id, "state": "ended"})
    record(connection, (run_ended(at, one(connection, run_id)),))


def _filtered(statement: Select[Any], wanted: RunFilter) -> Select[Any]:
    if wanted.states:
        statement = statement.where(orders.c.state.in_(wanted.states))
    if wanted.outcome is not None:
        statement = statement.where(runs.c.outcome == wanted.outcome)
    if wanted.verdict is not None:
        statement = statement.where(runs.c.verdict == wanted.verdict)
    if wanted.repository is not None:
        statement = statement.where(orders.c.repository == wanted.repository)
    if wanted.label is not None:
        named = exists().where(
            order_labels.c.run_id == orders.c.run_id, order_labels.c.label == wanted.label
        )
        statement = statement.where(named)
    for sought in wanted.sought:
        called = orders.c.run_id
        fits = [called.istartswith(each, autoescape=True) for each in sought.beginnings if each]
        if sought.ending:
            fits.append(called.iendswith(sought.ending, autoescape=True))
        fits.append(runs.c.prompt.icontains(sought.word, autoescape=True))
        statement = statement.where(or_(*fits))
    return statement
