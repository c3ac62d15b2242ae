"""What the addresses that orders name have still to be told of their runs."""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from turnout.core.govern.happenings import Happening, decode_happening
from turnout.core.govern.webhooks import Delivery, Webhook
from turnout.core.json import ascii_json
from turnout.store.database import Database
from turnout.store.schema import happenings, notifications, orders

__all__ = ["NotificationsStore", "add_notifications"]

_PAUSED: Final = select(
    func.max(notifications.c.again_at).label("until"),
    func.max(notifications.c.failures).label("failures"),
).where(notifications.c.target == bindparam("of"), notifications.c.failures > 0)
"""Until when an address that does not take messages gets none."""


def add_notifications(connection: Connection, told: Iterable[Happening]) -> None:
    """Keep, in the transaction of what happened to runs, whom their orders want told."""
    for happening in told:
        payload = connection.scalar(
            select(orders.c.payload).where(orders.c.run_id == happening.subject)
        )
        url = None if payload is None else json.loads(payload).get("notify")
        if url:
            target = _target(happening.project, url)
            paused = connection.execute(_PAUSED, {"of": target}).one()
            row = {
                "run_id": happening.subject,
                "target": target,
                "project": happening.project,
                "url": url,
                "happening": happening.id,
                "at": happening.at,
                "due_at": max(happening.at, paused.until or happening.at),
                "failures": paused.failures or 0,
                "again_at": paused.until,
            }
            connection.execute(insert(notifications), row)


class NotificationsStore:
    """Notifications until they are taken or given up, as a sender of webhooks claims them.

    All that one project has for one address waits together while that does not take it.
    """

    def __init__(self, database: Database, webhook_for: Callable[[str, str, str], Webhook]) -> None:
        """`webhook_for` makes one of a target, its project and its URL."""
        self._database = database
        self._webhook_for = webhook_for

    async def claim(self, now: datetime, *, limit: int, seconds: float) -> Sequence[Delivery]:
        """Return notifications that are due, which for so many seconds are nobody else's."""
        due = (
            select(notifications, happenings.c.payload)
            .join(happenings, happenings.c.id == notifications.c.happening)
            .where(notifications.c.due_at <= now)
            .order_by(notifications.c.due_at, notifications.c.number)
            .limit(limit)
        )
        if not await self._database.read(lambda connection: connection.execute(due).first()):
            # Most of the time nothing is due, and no lock is taken.
            return ()

        def work(connection: Connection) -> Sequence[Delivery]:
            locked = due.with_for_update(of=notifications, skip_locked=True)
            rows = connection.execute(locked).all()
            mine = notifications.c.number.in_([row.number for row in rows])
            until = now + timedelta(seconds=seconds)
            connection.execute(update(notifications).where(mine).values(due_at=until))
            return [
                Delivery(
                    row.number,
                    self._webhook_for(row.target, row.project, row.url),
                    decode_happening(row.payload),
                    row.failures,
                )
                for row in rows
            ]

        return await self._database.write(work, relaxed=True)

    async def delivered(self, delivery: Delivery, at: datetime) -> None:
        """Note that a notification was taken."""
        del at
        taken = delete(notifications).where(notifications.c.number == delivery.number)
        await self._database.write(lambda connection: connection.execute(taken))

    async def failed(
        self,
        delivery: Delivery,
        failure: str,
        at: datetime,
        *,
        again_at: datetime,
        oldest: datetime,
    ) -> None:
        """Note that one was not taken: its address gets nothing until `again_at`.

        What has happened before `oldest` is given up.
        """
        del failure, at
        waiting = notifications.c.target == delivery.webhook.id

        def work(connection: Connection) -> None:
            connection.execute(delete(notifications).where(waiting, notifications.c.at < oldest))
            later = {
                "due_at": again_at,
                "again_at": again_at,
                "failures": delivery.failures + 1,
            }
            connection.execute(update(notifications).where(waiting).values(later))

        await self._database.write(work)


def _target(project: str, url: str) -> str:
    return hashlib.sha256(ascii_json([project, url]).encode()).hexdigest()[:32]
