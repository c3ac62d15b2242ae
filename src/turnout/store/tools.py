"""Which tools were declared, and how the lists of policies fit them."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, case, func, select

from turnout.core.govern.toolwatch import PolicyDay, SeenTool, ToolHit, ToolReport
from turnout.store.database import Database
from turnout.store.schema import receipts, tool_hits, tools

__all__ = ["ToolsStore"]

_HITS: Select[Any] = (
    select(
        tool_hits.c.key,
        tool_hits.c.tool,
        func.sum(tool_hits.c.served).label("served"),
        func.sum(tool_hits.c.refused).label("refused"),
        func.min(tool_hits.c.day).label("first_day"),
        func.max(tool_hits.c.last_at).label("last_at"),
    )
    .where(
        tool_hits.c.policy == bindparam("policy"),
        tool_hits.c.day >= bindparam("since"),
        tool_hits.c.day <= bindparam("today"),
    )
    .group_by(tool_hits.c.key, tool_hits.c.tool)
)
_DAYS: Select[Any] = (
    select(
        receipts.c.day,
        func.count().label("requests"),
        func.sum(case((receipts.c.outside > 0, 1), else_=0)).label("outside"),
    )
    .where(
        receipts.c.policy == bindparam("policy"),
        receipts.c.tools > 0,
        receipts.c.at >= bindparam("from_at"),
        receipts.c.at < bindparam("to_at"),
    )
    .group_by(receipts.c.day)
    .order_by(receipts.c.day)
)


class ToolsStore:
    """Reads the inventory of tools."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def inventory(
        self, *, limit: int, project: str | None = None, key: str | None = None
    ) -> Sequence[SeenTool]:
        """Return what was declared, by key: tools that are new to it first."""
        table = tools.c
        wanted = select(tools).order_by(table.first_at.desc(), table.project, table.key, table.tool)
        if project is not None:
            wanted = wanted.where(table.project == project)
        if key is not None:
            wanted = wanted.where(table.key == key)
        some = wanted.limit(limit)
        rows = await self._database.read(lambda connection: connection.execute(some).all())
        return tuple(SeenTool(**row._asdict()) for row in rows)

    async def report(self, policy: str, *, since: date, today: date) -> ToolReport:
        """Return how a policy's list fits what was declared from `since` to `today`."""

        def work(connection: Connection) -> ToolReport:
            hits = connection.execute(_HITS, asked).all()
            days = connection.execute(_DAYS, asked).all()
            listed = sorted(map(_hit, hits), key=lambda hit: (-hit.served - hit.refused, hit.tool))
            return ToolReport(policy, since, today, tuple(listed), tuple(map(_day, days)))

        asked = {
            "policy": policy,
            "since": since.isoformat(),
            "today": today.isoformat(),
            "from_at": datetime.combine(since, time(), UTC),
            "to_at": datetime.combine(today, time(), UTC) + timedelta(days=1),
        }
        return await self._database.read(work)


def _hit(row: Row[Any]) -> ToolHit:
    first = date.fromisoformat(row.first_day)
    return ToolHit(row.key, row.tool, int(row.served), int(row.refused), first, row.last_at)


def _day(row: Row[Any]) -> PolicyDay:
    return PolicyDay(date.fromisoformat(row.day), row.requests, int(row.outside))
