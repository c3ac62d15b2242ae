"""Which model made each tool call, and what it thought before."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import Connection, bindparam, select

from turnout.core.govern.closing import MadeCalls
from turnout.core.ids import DeploymentId, ModelId, ToolCallId
from turnout.core.tools import Holder
from turnout.store.database import Database
from turnout.store.dialects import insert_or_replace
from turnout.store.schema import affinity

__all__ = ["AffinityStore", "affinity_rows"]

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

    async def remember(self, made: MadeCalls) -> None:
        """Note who made these calls; the last note about a call counts."""
        rows = affinity_rows(made)
        if rows:
            await self._database.write(lambda conn: insert_or_replace(conn, affinity, rows))

    async def holder(self, scope: str, calls: Sequence[ToolCallId]) -> Holder | None:
        """Return the model that made the first known of these calls; None where none is known."""
        if not calls:
            return None

        def work(connection: Connection) -> Holder | None:
            for some in _batches(calls):
                known = {
                    row.call_id: Holder(ModelId(row.model), DeploymentId(row.deployment))
                    for row in connection.execute(_KNOWN, {"scope": scope, "calls": some})
                }
                for call in some:
                    if call in known:
                        return known[call]
            return None

        return await self._database.read(work)

    async def reasoning(self, scope: str, calls: Sequence[ToolCallId]) -> Mapping[ToolCallId, str]:
        """Return what the model thought before each of these calls, where that was kept."""
        if not calls:
            return {}

        def work(connection: Connection) -> Mapping[ToolCallId, str]:
            return {
                row.call_id: row.reasoning
                for some in _batches(calls)
                for row in connection.execute(_KNOWN, {"scope": scope, "calls": some})
                if row.reasoning
            }

        return await self._database.read(work)


def affinity_rows(made: MadeCalls) -> list[dict[str, Any]]:
    """Return the rows that note who made these calls, to be inserted or to replace older ones."""
    noted = {"scope": made.scope, **made.holder._asdict(), "reasoning": made.reasoning or None}
    return [{**noted, "call_id": call} for call in dict.fromkeys(made.calls)]


def _batches(calls: Sequence[ToolCallId]) -> Iterator[tuple[ToolCallId, ...]]:
    rest = iter(dict.fromkeys(calls))
    while some := tuple(islice(rest, _AT_ONCE)):
        yield some
