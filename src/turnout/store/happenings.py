"""What happened, each once, and whom it has still to be told."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from turnout.core.govern.happenings import (
    Happening,
    HappeningKind,
    decode_happening,
    encode_happening,
)
from turnout.core.govern.webhooks import decode_webhook
from turnout.errors import StoreError
from turnout.store.database import Database
from turnout.store.dialects import insert_missing
from turnout.store.notifications import add_notifications
from turnout.store.schema import deliveries, happenings, webhooks

__all__ = ["MOST_WAITING", "HappeningsStore", "record"]

MOST_WAITING = 10_000
"""Deliveries that wait for one webhook; what comes beyond is dropped."""


def record(
    connection: Connection, new: Iterable[Happening], *, most_waiting: int = MOST_WAITING
) -> int:
    """Write what was not known yet, with a delivery for each webhook that wants it; say how many.

    In the caller's transaction, so that whatever happened and its telling are one.
    """
    fresh = [happening for happening in new if _is_new(connection, happening)]
    if fresh:
        _hand_out(connection, fresh, most_waiting)
        add_notifications(connection, [one for one in fresh if one.kind.startswith("run.")])
    return len(fresh)


def _is_new(connection: Connection, happening: Happening) -> bool:
    row = {
        "id": happening.id,
        "at": happening.at,
        "kind": happening.kind,
        "project": happening.project or None,
        "key": happening.key or None,
        "payload": encode_happening(happening),
    }
    return insert_missing(connection, happenings, row)


def _hand_out(connection: Connection, fresh: Sequence[Happening], most_waiting: int) -> None:
    waiting = select(func.count()).where(deliveries.c.webhook == webhooks.c.id).scalar_subquery()
    listed = connection.execute(select(webhooks.c.payload, waiting)).all()
    rows: list[dict[str, Any]] = []
    for payload, count in listed:
        webhook = decode_webhook(payload)
        wanted = [happening for happening in fresh if webhook.wants(happening)]
        kept = wanted[: max(0, most_waiting - count)]
        rows += [
            {"webhook": webhook.id, "happening": one.id, "at": one.at, "due_at": one.at}
            for one in kept
        ]
        if len(kept) < len(wanted):
            dropped = webhooks.c.dropped + len(wanted) - len(kept)
            of_it = update(webhooks).where(webhooks.c.id == webhook.id)
            connection.execute(of_it.values(dropped=dropped))
    if rows:
        connection.execute(insert(deliveries), rows)


class HappeningsStore:
    """Reads what happened, and takes what happens outside of requests."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, new: Sequence[Happening]) -> int:
        """Write what was not known yet, with its deliveries, and return how many that were."""
        return await self._database.write(lambda connection: record(connection, new))

    async def newest(
        self,
        *,
        limit: int,
        kinds: Sequence[HappeningKind] = (),
        key: str | None = None,
        since: datetime | None = None,
    ) -> Sequence[Happening]:
        """Return what was written last, newest first; without `kinds` of every kind."""
        table = happenings.c
        wanted = select(table.payload).order_by(table.number.desc()).limit(limit)
        if kinds:
            wanted = wanted.where(table.kind.in_(kinds))
        if key is not None:
            wanted = wanted.where(table.key == key)
        if since is not None:
            wanted = wanted.where(table.at >= since)
        payloads = await self._database.read(lambda connection: connection.scalars(wanted).all())
        return tuple(_decode(payload) for payload in payloads)


def _decode(payload: str) -> Happening:
    try:
        return decode_happening(payload)
    except ValueError as error:
        raise StoreError(f"A stored happening cannot be read: {error}") from error
