"""What requests showed, taken some of it at a time."""

from collections.abc import Collection, Sequence
from dataclasses import fields
from itertools import groupby

from sqlalchemy import Connection, Table, func, select

from turnout.core.govern.happenings import Happening
from turnout.core.govern.toolwatch import OutsideTool, SeenTool
from turnout.store.database import Database
from turnout.store.dialects import insert_or_add
from turnout.store.happenings import record
from turnout.store.schema import tool_hits, tools

__all__ = ["MOST_TOOLS", "NoticesStore"]

MOST_TOOLS = 5_000
"""Tools that are kept of one key: a client may make names up."""


class NoticesStore:
    """Adds to the inventory of tools and to what happened."""

    def __init__(self, database: Database, *, most_tools: int = MOST_TOOLS) -> None:
        self._database = database
        self._most_tools = most_tools

    async def write(
        self,
        seen: Sequence[SeenTool],
        outside: Sequence[OutsideTool],
        happened: Sequence[Happening],
    ) -> int:
        """Add sightings, write what happened and was not known, and return how much that was.

        Of a key that has its most tools no further ones are kept, nor what happened with them.
        """

        def work(connection: Connection) -> int:
            left_out = _left_out(connection, seen, self._most_tools)
            kept = [one for one in seen if (one.key, one.tool) not in left_out]
            hits = [one for one in outside if (one.key, one.tool) not in left_out]
            told = [one for one in happened if (one.key, one.subject) not in left_out]
            _add(connection, tools, kept, ("requests", "calls"))
            _add(connection, tool_hits, hits, ("served", "refused"))
            return record(connection, told)

        # A power cut may take what the last second showed; the receipts are there all the same.
        return await self._database.write(work, relaxed=True)


def _left_out(
    connection: Connection, seen: Sequence[SeenTool], most: int
) -> Collection[tuple[str, str]]:
    """Return key and tool of what there is no room for."""
    left_out: set[tuple[str, str]] = set()
    for key, group in groupby(sorted(seen, key=_key), _key):
        names = {one.tool for one in group}
        of_key = tools.c.key == key
        known = select(tools.c.tool).where(of_key, tools.c.tool.in_(names))
        new = sorted(names.difference(connection.scalars(known)))
        if new:
            count = connection.scalar(select(func.count()).select_from(tools).where(of_key))
            left_out |= {(key, name) for name in new[max(0, most - (count or 0)) :]}
    return left_out


def _key(seen: SeenTool) -> str:
    return seen.key


def _add(
    connection: Connection,
    table: Table,
    facts: Sequence[SeenTool] | Sequence[OutsideTool],
    counts: Sequence[str],
) -> None:
    rows = [{field.name: getattr(one, field.name) for field in fields(one)} for one in facts]
    if rows:
        # In one order everywhere, so that no two processes wait for each other.
        rows.sort(key=lambda row: [str(row[column.name]) for column in table.primary_key])
        insert_or_add(connection, table, rows, adds=counts, latest="last_at")
