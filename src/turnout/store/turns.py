"""What the gateway and a model said to each other before a client's tool calls."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice

from sqlalchemy import Connection, bindparam, delete, select

from turnout.core.clock import Clock
from turnout.core.ids import ToolCallId
from turnout.store.database import Database
from turnout.store.dialects import insert_or_replace
from turnout.store.schema import kept_turns

__all__ = ["TurnsStore"]

_AT_ONCE = 500
"""Ids in one query; SQLite takes some thousands of parameters at most."""

_KNOWN = select(kept_turns.c.call_id, kept_turns.c.text).where(
    kept_turns.c.scope == bindparam("scope"),
    kept_turns.c.call_id.in_(bindparam("calls", expanding=True)),
)
_FORGET = delete(kept_turns).where(kept_turns.c.at < bindparam("before"))


class TurnsStore:
    """Turns by the call that ended them, within a scope."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def keep(self, scope: str, call: ToolCallId, text: str) -> None:
        """Keep a text durably, in place of an earlier one."""
        rows = [{"scope": scope, "call_id": call, "at": self._clock.now(), "text": text}]
        await self._database.write(lambda conn: insert_or_replace(conn, kept_turns, rows))

    async def get(self, scope: str, calls: Sequence[ToolCallId]) -> Mapping[ToolCallId, str]:
        """Return what is kept under any of these calls."""

        def work(connection: Connection) -> dict[ToolCallId, str]:
            found: dict[ToolCallId, str] = {}
            rest = iter(dict.fromkeys(calls))
            while some := tuple(islice(rest, _AT_ONCE)):
                rows = connection.execute(_KNOWN, {"scope": scope, "calls": some})
                found.update({ToolCallId(row.call_id): row.text for row in rows})
            return found

        return await self._database.read(work) if calls else {}

    async def forget(self, before: datetime) -> int:
        """Forget what was kept before that moment; return how much that was."""

        def work(connection: Connection) -> int:
            return connection.execute(_FORGET, {"before": before}).rowcount

        return await self._database.write(work)
