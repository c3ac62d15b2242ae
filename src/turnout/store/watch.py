"""How the service stands as a whole, for those who watch over it."""

from datetime import datetime
from typing import Final

from sqlalchemy import Connection, func, select

from turnout.core.observe.standing import ServiceStanding
from turnout.core.runs import RunState
from turnout.store.database import Database
from turnout.store.dialects import seconds_now
from turnout.store.schema import orders, workers

__all__ = ["WatchStore"]

_OPEN: Final[tuple[RunState, ...]] = ("queued", "running", "waiting")
_STATES = (
    select(orders.c.state, func.count(), func.min(orders.c.ordered_at))
    .where(orders.c.state.in_(_OPEN))
    .group_by(orders.c.state)
)


class WatchStore:
    """Counts what has not ended; runs that have are never looked at."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def standing(self, now: datetime, *, stale: float) -> ServiceStanding:
        """Return how many runs are in which state, and how many workers gave a sign of life.

        `stale` is in seconds of the database's clock.
        """

        def work(connection: Connection) -> ServiceStanding:
            rows = connection.execute(_STATES).all()
            since = seconds_now(connection) - stale
            alive = select(func.count()).select_from(workers).where(workers.c.beat >= since)
            counts = {row[0]: row[1] for row in rows}
            oldest = next((row[2] for row in rows if row[0] == "queued"), None)
            return ServiceStanding(
                runs={state: counts.get(state, 0) for state in _OPEN},
                oldest_queued=0.0 if oldest is None else (now - oldest).total_seconds(),
                workers=connection.scalars(alive).one(),
            )

        return await self._database.read(work)
