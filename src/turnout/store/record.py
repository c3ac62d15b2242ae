"""The record of every run."""

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Integer, RowMapping, bindparam, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from turnout.core.events import (
    Entry,
    Event,
    ReviewDecision,
    RunEnded,
    RunStarted,
    VerdictGiven,
    decode_event,
    encode_event,
)
from turnout.core.govern.happenings import decision_of, run_ended
from turnout.core.ids import RunId
from turnout.core.runs import RunRow
from turnout.core.secrecy.redactor import Redactor
from turnout.core.service.orders import OrderedRun
from turnout.errors import NotFoundError, StaleEpochError, StoreError
from turnout.store.columns import EscapedText
from turnout.store.database import Database
from turnout.store.happenings import record
from turnout.store.machines import note_use
from turnout.store.ordered import one
from turnout.store.schema import events, orders, runs

__all__ = ["RecordStore", "append_events", "event_row", "line_of"]

_BEGIN = insert(runs)
_APPEND = insert(events)
_RUN = select(runs).where(runs.c.run_id == bindparam("run"))
_LOCK_RUN = _RUN.with_for_update()
_CHANGE_RUN = update(runs).where(runs.c.run_id == bindparam("run"))
_MOVE_ON = (
    update(runs)
    .where(
        runs.c.run_id == bindparam("run"),
        runs.c.epoch == bindparam("of_epoch"),
        runs.c.ended_at.is_(None),
    )
    .returning(runs.c.last_seq)
)
"""At once looks whether a worker may append, and holds the line of its run."""
_END_ORDER = (
    update(orders)
    .where(orders.c.run_id == bindparam("run"))
    .values(state="ended", worker="", waits=None)
)
_ENDED = select(runs.c.run_id).where(
    runs.c.ended_at.is_not(None), runs.c.run_id.in_(bindparam("runs", expanding=True))
)
_ENTRIES = (
    select(events.c.seq, events.c.at, events.c.payload)
    .where(events.c.run_id == bindparam("run"), events.c.seq > bindparam("after"))
    .order_by(events.c.seq)
)
_LAST_PAYLOADS = (
    select(events.c.payload)
    .where(events.c.run_id == bindparam("run"))
    .order_by(events.c.seq.desc())
    .limit(10)
)
"""A review stands just before the end."""
_ROWS = select(runs, orders.c.state).select_from(runs.outerjoin(orders))
_ROW = _ROWS.where(runs.c.run_id == bindparam("run"))
_NEWEST = (
    _ROWS.where(runs.c.last_seq > 0)
    .order_by(runs.c.number.desc())
    .limit(bindparam("limit", type_=Integer))
)
# `LIKE` would take part of the prefix as a pattern, and SQLite's ignores case.
_FIND = (
    select(runs.c.run_id)
    .where(
        func.substr(runs.c.run_id, 1, bindparam("length"), type_=EscapedText) == bindparam("prefix")
    )
    .order_by(runs.c.number.desc())
    .limit(5)
)


class RecordStore:
    """Events in order, and a line per run that is kept in step with them."""

    def __init__(self, database: Database, redactor: Redactor | None = None) -> None:
        """`redactor` takes out of events what nobody may read."""
        self._database = database
        self._redactor = redactor or Redactor()

    async def begin(self, run_id: RunId, first: Event, at: datetime) -> int:
        """Open a record with its `RunStarted` and return its epoch, 1.

        `StoreError` where the run has a record, or `first` is another event.
        """
        first = self._redactor.event(first)
        if not isinstance(first, RunStarted):
            raise StoreError(f"A record begins with run_started, not with {first.type}.")
        run = {
            "run_id": run_id,
            "prompt": first.task.prompt,
            "repository": first.task.repository,
            "base_commit": first.base_commit,
            "started_at": at,
            "epoch": 1,
            "last_seq": 1,
        }
        row = event_row(Entry(run_id, 1, at, first), epoch=1)

        def work(connection: Connection) -> int:
            try:
                connection.execute(_BEGIN, run)
            except IntegrityError as error:
                raise StoreError(f"Run {run_id} already has a record.") from error
            connection.execute(_APPEND, row)
            return 1

        return await self._database.write(work)

    async def take_over(self, run_id: RunId) -> int:
        """Return a new epoch; appends under an older one are refused from now on."""

        def work(connection: Connection) -> int:
            epoch = int(line_of(connection, run_id, lock=True)["epoch"]) + 1
            connection.execute(_CHANGE_RUN, {"run": run_id, "epoch": epoch})
            return epoch

        return await self._database.write(work)

    async def append(self, run_id: RunId, epoch: int, event: Event, at: datetime) -> Entry:
        """Commit an event durably.

        `StaleEpochError` where another worker took over, `StoreError` where the run has ended,
        `NotFoundError` where it has no record.
        """
        return (await self.append_all(run_id, epoch, (event,), at))[0]

    async def append_all(
        self, run_id: RunId, epoch: int, together: Sequence[Event], at: datetime
    ) -> Sequence[Entry]:
        """Commit events, all or none; the errors are those of `append`."""
        told = tuple(map(self._redactor.event, together))
        return await self._database.write(
            lambda connection: append_events(connection, run_id, epoch, told, at)
        )

    async def entries(
        self, run_id: RunId, *, after: int = 0, limit: int | None = None
    ) -> Sequence[Entry]:
        """Return a record from after `after`, in order; `NotFoundError` where there is none.

        `limit`: at most so many entries.
        """
        asked = {"run": run_id, "after": after}
        wanted = _ENTRIES if limit is None else _ENTRIES.limit(limit)

        def work(connection: Connection) -> Sequence[RowMapping]:
            line_of(connection, run_id)
            return connection.execute(wanted, asked).mappings().all()

        rows = await self._database.read(work)
        return tuple(Entry(run_id, row["seq"], row["at"], _decode(run_id, row)) for row in rows)

    async def ended(self, run_ids: Sequence[RunId]) -> Sequence[RunId]:
        """Return those of some hundreds of runs that have ended."""
        asked = {"runs": run_ids}
        found = await self._database.read(
            lambda connection: connection.scalars(_ENDED, asked).all()
        )
        return tuple(map(RunId, found))

    async def rows(self, *, limit: int = 50) -> Sequence[RunRow]:
        """Return the newest runs first."""
        asked = {"limit": limit}
        found = await self._database.read(
            lambda connection: connection.execute(_NEWEST, asked).mappings().all()
        )
        return tuple(_run_row(row) for row in found)

    async def row(self, run_id: RunId) -> RunRow:
        """Return one run's line; `NotFoundError` where there is none."""
        asked = {"run": run_id}
        found = await self._database.read(
            lambda connection: connection.execute(_ROW, asked).mappings().first()
        )
        if found is None:
            raise _not_found(run_id)
        return _run_row(found)

    async def find(self, prefix: str) -> RunId:
        """Return the one run whose id starts so; `NotFoundError` where none or several do."""
        asked = {"prefix": prefix, "length": len(prefix)}
        found = await self._database.read(lambda connection: connection.scalars(_FIND, asked).all())
        if not found:
            raise _not_found(prefix)
        if len(found) > 1:
            message = f"Several runs begin with {prefix!r}: {', '.join(found)}."
            raise NotFoundError(message, mend="Give more of the id.")
        return RunId(found[0])


def append_events(
    connection: Connection, run_id: RunId, epoch: int, together: Sequence[Event], at: datetime
) -> Sequence[Entry]:
    """Append events within a transaction; the errors are those of `RecordStore.append`."""
    changes: dict[str, Any] = {}
    for event in together:
        changes |= _changes(event, at)
    moved = _MOVE_ON.values(last_seq=runs.c.last_seq + len(together), **changes)
    last = connection.scalar(moved, {"run": run_id, "of_epoch": epoch})
    if last is None:
        raise _refusal(line_of(connection, run_id), epoch)
    first = last - len(together) + 1
    entries = [Entry(run_id, seq, at, event) for seq, event in enumerate(together, first)]
    rows = [event_row(entry, epoch=epoch) for entry in entries]
    connection.execute(_APPEND, rows if len(rows) > 1 else rows[0])
    note_use(connection, entries)
    if "ended_at" in changes and connection.execute(_END_ORDER, {"run": run_id}).rowcount:
        run = one(connection, run_id)
        record(connection, (run_ended(at, run, _decision(connection, run)),))
    return entries


def _decision(connection: Connection, run: OrderedRun) -> ReviewDecision | None:
    """Return what a review that ends has come to; None for runs of another kind."""
    if run.order.task.review is None:
        return None
    payloads = connection.scalars(_LAST_PAYLOADS, {"run": run.run_id}).all()
    return decision_of(map(decode_event, reversed(payloads)))


def _refusal(run: RowMapping, epoch: int) -> StoreError:
    """Return why nothing may be appended to a record."""
    if run["epoch"] != epoch:
        return StaleEpochError(
            f"Run {run['run_id']} was taken over: epoch {epoch} ended, {run['epoch']} writes now.",
            mend="Let the worker that took it over go on.",
        )
    return StoreError(f"Run {run['run_id']} has ended; its record is closed.")


def event_row(entry: Entry, *, epoch: int) -> dict[str, Any]:
    """Return the row of an entry."""
    return {
        "run_id": entry.run_id,
        "seq": entry.seq,
        "at": entry.at,
        "epoch": epoch,
        "payload": encode_event(entry.event),
    }


def _changes(event: Event, at: datetime) -> dict[str, Any]:
    """Return what an event changes in its run's line."""
    if isinstance(event, RunEnded):
        return {"ended_at": at, "outcome": event.outcome}
    if isinstance(event, VerdictGiven):
        return {"verdict": event.verdict.name}
    if isinstance(event, RunStarted):
        return {"started_at": at, "base_commit": event.base_commit}
    return {}


def line_of(connection: Connection, run_id: RunId, *, lock: bool = False) -> RowMapping:
    """Return the line of a run, held until the transaction ends; `NotFoundError` without one."""
    row = connection.execute(_LOCK_RUN if lock else _RUN, {"run": run_id}).mappings().first()
    if row is None:
        raise _not_found(run_id)
    return row


def _not_found(run_id: str) -> NotFoundError:
    return NotFoundError(f"There is no run {run_id!r}.", mend="See `turnout runs list`.")


def _run_row(row: RowMapping) -> RunRow:
    return RunRow(**{field.name: row[field.name] for field in fields(RunRow)})


def _decode(run_id: RunId, row: RowMapping) -> Event:
    try:
        return decode_event(row["payload"])
    except ValueError as error:
        raise StoreError(f"Event {row['seq']} of run {run_id} cannot be read: {error}") from error
