"""Who changed what, in the order in which it was done."""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import RowMapping, Select, insert, select

from turnout.core.govern.audit import Audited, AuditFilter, AuditLine, AuditPage
from turnout.core.json import ascii_json
from turnout.store.database import Database
from turnout.store.schema import audit

__all__ = ["AuditStore"]


class AuditStore:
    """Changes, written once; they go only when they are older than is kept."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, change: Audited) -> None:
        """Write a change durably."""
        row = {
            "at": change.at,
            "actor": change.actor,
            "project": change.project,
            "action": change.action,
            "subject": change.subject,
            "detail": ascii_json(dict(change.detail)),
        }
        await self._database.write(lambda connection: connection.execute(insert(audit), row))

    async def page(self, wanted: AuditFilter, *, before: int | None, limit: int) -> AuditPage:
        """Return changes that are wanted, newest first, from before a number."""
        statement = _filtered(wanted).order_by(audit.c.number.desc()).limit(limit + 1)
        if before is not None:
            statement = statement.where(audit.c.number < before)
        rows = await self._database.read(
            lambda connection: connection.execute(statement).mappings().all()
        )
        lines = tuple(map(_line, rows[:limit]))
        return AuditPage(lines, lines[-1].number if len(rows) > limit else None)

    async def actions(self) -> Sequence[str]:
        """Return the kinds of changes that are on record, by name."""
        statement = select(audit.c.action).distinct().order_by(audit.c.action)
        return await self._database.read(
            lambda connection: connection.execute(statement).scalars().all()
        )


def _filtered(wanted: AuditFilter) -> Select[Any]:
    statement = select(audit)
    for column, value in (
        (audit.c.actor, wanted.actor),
        (audit.c.project, wanted.project),
        (audit.c.action, wanted.action),
        (audit.c.subject, wanted.subject),
    ):
        if value is not None:
            statement = statement.where(column == value)
    return statement if wanted.since is None else statement.where(audit.c.at >= wanted.since)


def _line(row: RowMapping) -> AuditLine:
    change = Audited(
        row["at"],
        row["actor"],
        row["project"],
        row["action"],
        row["subject"],
        json.loads(row["detail"]),
    )
    return AuditLine(row["number"], change)
