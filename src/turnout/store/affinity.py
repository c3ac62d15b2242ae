"""Which model made each tool call."""

from collections.abc import Sequence
from itertools import islice

from sqlalchemy import Connection, bindparam, select

from turnout.core.ids import DeploymentId, ModelId, ToolCallId
from turnout.core.tools import Holder
from turnout.store.database import Database
from turnout.store.dialects import insert_or_replace
from turnout.store.schema import affinity

__all__ = ["AffinityStore"]

_KNOWN = select(affinity).where(
    affinity.c.scope == bindparam("scope"),
    affinity.c.call_id.in_(bindparam("calls", expanding=True)),
)

_AT_ONCE = 500
"""Ids in one query; SQLite takes some thousands of parameters at most."""


class AffinityStore:
    """The holder of each tool call, within a scope."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def remember(self, scope: str, calls: Sequence[ToolCallId], holder: Holder) -> None:
        """Note the model that made these calls; the last note about a call counts."""
        rows = [{"scope": scope, "call_id": call, **holder._asdict()} for call in set(calls)]
        if rows:
            await self._database.write(lambda conn: insert_or_replace(conn, affinity, rows))

    async def holder(self, scope: str, calls: Sequence[ToolCallId]) -> Holder | None:
        """Return the model that made the first known of these calls; None where none is known."""
        if not calls:
            return None

        def work(connection: Connection) -> Holder | None:
            rest = iter(calls)
            while some := tuple(islice(rest, _AT_ONCE)):
                known = _known(connection, scope, some)
                for call in some:
                    if call in known:
                        return known[call]
            return None

        return await self._database.read(work)


def _known(
    connection: Connection, scope: str, calls: Sequence[ToolCallId]
) -> dict[ToolCallId, Holder]:
    return {
        row.call_id: Holder(ModelId(row.model), DeploymentId(row.deployment))
        for row in connection.execute(_KNOWN, {"scope": scope, "calls": calls})
    }
