"""What runs cost by the receipts of their calls, and corrections of their records."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, insert, select, update

from turnout.core.clock import Clock
from turnout.core.events import Entry, SpendCorrected
from turnout.core.ids import RunId, SessionId
from turnout.core.receipts import Receipt
from turnout.errors import ConflictError, NotFoundError
from turnout.store.database import Database
from turnout.store.machines import COMMAND
from turnout.store.ordered import one
from turnout.store.receipts import ReceiptsStore
from turnout.store.record import event_row, line_of
from turnout.store.schema import events, runs

__all__ = ["SpendStore"]

_ENDED = (
    select(runs.c.number, runs.c.run_id)
    .where(runs.c.number > bindparam("after"), runs.c.ended_at.is_not(None), runs.c.last_seq > 0)
    .order_by(runs.c.number)
    .limit(bindparam("most"))
)
_LAST_SEQ = update(runs).where(runs.c.run_id == bindparam("run"))


class SpendStore:
    """Receipts of runs, and corrections of their records."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._receipts = ReceiptsStore(database)

    async def receipts(self, run_id: RunId) -> Sequence[Receipt]:
        """Return the receipts of a run's own calls, oldest first.

        Another key may have named its session so, too: those calls are not the run's.
        """
        key = await self._database.read(lambda connection: _key_of(connection, run_id))
        return await self._receipts.of_session(SessionId(run_id), key=key)

    async def correct(self, entries: Sequence[Entry], correction: SpendCorrected) -> Entry:
        """Append to the record that `entries` are all of.

        `ConflictError` where it has not ended, or has grown since.
        """
        last = entries[-1]
        entry = Entry(last.run_id, last.seq + 1, self._clock.now(), correction)

        def work(connection: Connection) -> None:
            line = line_of(connection, entry.run_id, lock=True)
            if line["ended_at"] is None or line["last_seq"] != last.seq:
                raise ConflictError(f"The record of run {entry.run_id} still grows.")
            connection.execute(insert(events), event_row(entry, epoch=line["epoch"]))
            connection.execute(_LAST_SEQ, {"run": entry.run_id, "last_seq": entry.seq})

        await self._database.write(work)
        return entry

    async def ended(self, *, after: int, limit: int) -> Sequence[tuple[int, RunId]]:
        """Return runs that have ended, oldest first, each with its number, which is above `after`.

        Those that nobody had begun are left out.
        """
        asked = {"after": after, "most": limit}
        rows = await self._database.read(lambda connection: connection.execute(_ENDED, asked).all())
        return [(row.number, RunId(row.run_id)) for row in rows]


def _key_of(connection: Connection, run_id: RunId) -> str:
    try:
        return one(connection, run_id).order.key
    except NotFoundError:
        return COMMAND[1]
