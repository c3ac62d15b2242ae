"""Deletes what is older than is kept, a little at a time, so that nobody waits for it."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Select, Table, bindparam, delete, exists, func, select

from turnout.core.clock import Clock
from turnout.core.ids import RunId
from turnout.core.service.retention import Forgotten, Retention
from turnout.errors import NotFoundError
from turnout.store.database import Database
from turnout.store.record import line_of
from turnout.store.schema import (
    audit,
    deliveries,
    events,
    happenings,
    metadata,
    notifications,
    orders,
    publications,
    receipts,
    runs,
)

__all__ = ["RetentionStore"]

_ROWS: Final = 500
"""Rows in one transaction; of a run, all that it has."""
_PAUSE: Final = 0.02
"""Seconds between two of them, for others to write."""

_OF_RUNS: Final = tuple(
    table for table in reversed(metadata.sorted_tables) if table is not runs and "run_id" in table.c
)
"""Whatever is kept of a run; what depends on others of these first."""
_UNTOLD = exists().where(notifications.c.run_id == runs.c.run_id)
_UNPUBLISHED = exists().where(publications.c.run_id == runs.c.run_id, publications.c.state == "due")
_NEWEST = select(func.max(events.c.at)).where(events.c.run_id == runs.c.run_id).scalar_subquery()
_OVER = (
    select(runs.c.run_id)
    .select_from(runs.outerjoin(orders))
    .where(
        ~_UNTOLD,
        ~_UNPUBLISHED,
        (runs.c.ended_at < bindparam("before"))
        # One that a command left when it was killed: it goes on with none.
        | (
            runs.c.ended_at.is_(None)
            & orders.c.run_id.is_(None)
            & (runs.c.started_at < bindparam("before"))
            & (bindparam("before") > _NEWEST)
        ),
    )
    .order_by(runs.c.number)
    .limit(_ROWS)
)


class RetentionStore:
    """Forgets by age; what is under way, or is still to be told or published, is never touched."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def enforce(self, policy: Retention) -> Forgotten:
        """Delete what is older than the policy keeps, and return how much that was."""
        now = self._clock.now()
        return Forgotten(
            runs=await self._each(policy.runs, now, self._forget_runs),
            receipts=await self._each(policy.receipts, now, self._rows_of(receipts)),
            events=await self._each(policy.events, now, self._rows_of(happenings)),
            audit=await self._each(policy.audit, now, self._rows_of(audit)),
        )

    async def _each(
        self, age: timedelta | None, now: datetime, forget: Callable[[datetime], Awaitable[int]]
    ) -> int:
        if age is None:
            return 0
        total = 0
        while found := await forget(now - age):
            total += found
            await self._clock.sleep(_PAUSE)
        return total

    async def _forget_runs(self, before: datetime) -> int:
        asked = {"before": before}
        found = await self._database.read(lambda c: c.scalars(_OVER, asked).all())
        for run_id in found:
            with suppress(NotFoundError):  # another process was quicker
                await self._database.write(_Run(RunId(run_id)).forget, relaxed=True)
            await self._clock.sleep(_PAUSE / 10)
        return len(found)

    def _rows_of(self, table: Table) -> Callable[[datetime], Awaitable[int]]:
        old = _old(table)
        gone = delete(table).where(table.c.number.in_(bindparam("numbers", expanding=True)))

        async def forget(before: datetime) -> int:
            def work(connection: Connection) -> int:
                numbers = connection.scalars(old, {"before": before}).all()
                if numbers:
                    connection.execute(gone, {"numbers": numbers})
                return len(numbers)

            return await self._database.write(work, relaxed=True)

        return forget


@dataclass(frozen=True, slots=True)
class _Run:
    run_id: RunId

    def forget(self, connection: Connection) -> None:
        """Delete everything of a run that is over, in one transaction."""
        line_of(connection, self.run_id, lock=True)
        for table in _OF_RUNS:
            connection.execute(delete(table).where(table.c.run_id == self.run_id))
        connection.execute(delete(runs).where(runs.c.run_id == self.run_id))


def _old(table: Table) -> Select[Any]:
    statement = select(table.c.number).where(table.c.at < bindparam("before"))
    if table is happenings:
        for waiting in (deliveries, notifications):
            untold = exists().where(waiting.c.happening == happenings.c.id)
            statement = statement.where(~untold)
    return statement.order_by(table.c.number).limit(_ROWS)
