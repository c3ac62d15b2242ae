"""Webhooks, and the deliveries that wait for them."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Select, Update, delete, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from turnout.core.govern.happenings import decode_happening
from turnout.core.govern.webhooks import (
    Delivery,
    Webhook,
    WebhookState,
    decode_webhook,
    encode_webhook,
)
from turnout.errors import NotFoundError, StoreError
from turnout.store.database import Database
from turnout.store.schema import deliveries, happenings, webhooks

__all__ = ["WebhooksStore"]


class WebhooksStore:
    """Webhooks by id, and their deliveries until they are taken or given up."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, webhook: Webhook, at: datetime) -> None:
        """Tell a webhook of what happens from now on; `StoreError` where its id is taken."""
        row = {
            "id": webhook.id,
            "created_at": at,
            "payload": encode_webhook(webhook),
            "failures": 0,
            "dropped": 0,
        }

        def work(connection: Connection) -> None:
            try:
                connection.execute(insert(webhooks), row)
            except IntegrityError as error:
                raise StoreError(f"There already is a webhook {webhook.id}.") from error

        await self._database.write(work)

    async def remove(self, webhook_id: str) -> None:
        """Forget a webhook and what waits for it; `NotFoundError` where there is none."""

        def work(connection: Connection) -> int:
            connection.execute(delete(deliveries).where(deliveries.c.webhook == webhook_id))
            return connection.execute(delete(webhooks).where(webhooks.c.id == webhook_id)).rowcount

        if not await self._database.write(work):
            raise NotFoundError(f"There is no webhook {webhook_id!r}.")

    async def again(self, webhook_id: str, at: datetime) -> bool:
        """Send what waits for a webhook from `at` on; False where it has not failed.

        `NotFoundError` where there is none.
        """

        def work(connection: Connection) -> bool | None:
            mine = webhooks.c.id == webhook_id
            found = connection.execute(select(webhooks.c.paused_until).where(mine)).first()
            if found is None or found.paused_until is None:
                # What is on its way right now is left alone: it would arrive twice.
                return None if found is None else False
            waiting = update(deliveries).where(deliveries.c.webhook == webhook_id)
            connection.execute(waiting.values(due_at=at))
            connection.execute(update(webhooks).where(mine).values(paused_until=None))
            return True

        done = await self._database.write(work)
        if done is None:
            raise NotFoundError(f"There is no webhook {webhook_id!r}.")
        return done

    async def all(self) -> Sequence[WebhookState]:
        """Return every webhook, oldest first, and how its deliveries fare."""
        waiting = (
            select(func.count()).where(deliveries.c.webhook == webhooks.c.id).scalar_subquery()
        )
        listed = select(webhooks, waiting.label("waiting")).order_by(
            webhooks.c.created_at, webhooks.c.id
        )
        rows = await self._database.read(lambda connection: connection.execute(listed).all())
        return tuple(
            WebhookState(
                webhook=decode_webhook(row.payload),
                created_at=row.created_at,
                delivered_at=row.delivered_at,
                failed_at=row.failed_at,
                failure=row.failure or "",
                paused_until=row.paused_until,
                waiting=row.waiting,
                dropped=row.dropped,
            )
            for row in rows
        )

    async def claim(self, now: datetime, *, limit: int, seconds: float) -> Sequence[Delivery]:
        """Return deliveries that are due, which for so many seconds are nobody else's.

        One whose sender dies meanwhile is due again after that.
        """
        due = _due(now).limit(limit)
        if not await self._database.read(lambda connection: connection.execute(due).first()):
            # Most of the time nothing is due, and no lock is taken.
            return ()

        def work(connection: Connection) -> list[Delivery]:
            rows = connection.execute(due.with_for_update(of=deliveries, skip_locked=True)).all()
            numbers = [row.number for row in rows]
            until = now + timedelta(seconds=seconds)
            mine = update(deliveries).where(deliveries.c.number.in_(numbers))
            connection.execute(mine.values(due_at=until))
            return [
                Delivery(
                    row.number,
                    decode_webhook(row.webhook),
                    decode_happening(row.happening),
                    row.failures,
                )
                for row in rows
            ]

        return await self._database.write(work, relaxed=True)

    async def delivered(self, delivery: Delivery, at: datetime) -> None:
        """Note that a delivery was taken: its webhook works."""

        def work(connection: Connection) -> None:
            connection.execute(delete(deliveries).where(deliveries.c.number == delivery.number))
            works = {"delivered_at": at, "failures": 0, "paused_until": None}
            connection.execute(_of(delivery).values(works))

        await self._database.write(work)

    async def failed(
        self,
        delivery: Delivery,
        failure: str,
        at: datetime,
        *,
        again_at: datetime,
        oldest: datetime,
    ) -> None:
        """Note that a delivery was not taken: its webhook gets nothing until `again_at`.

        What has happened before `oldest` is given up.
        """

        def work(connection: Connection) -> None:
            waiting = deliveries.c.webhook == delivery.webhook.id
            old = connection.execute(delete(deliveries).where(waiting, deliveries.c.at < oldest))
            connection.execute(update(deliveries).where(waiting).values(due_at=again_at))
            facts = {
                "failed_at": at,
                "failure": failure,
                "failures": webhooks.c.failures + 1,
                "paused_until": again_at,
                "dropped": webhooks.c.dropped + old.rowcount,
            }
            connection.execute(_of(delivery).values(facts))

        await self._database.write(work)


def _due(now: datetime) -> Select[Any]:
    """Return those of webhooks that are not paused, oldest first."""
    return (
        select(
            deliveries.c.number,
            webhooks.c.payload.label("webhook"),
            webhooks.c.failures,
            happenings.c.payload.label("happening"),
        )
        .join(webhooks, webhooks.c.id == deliveries.c.webhook)
        .join(happenings, happenings.c.id == deliveries.c.happening)
        .where(
            deliveries.c.due_at <= now,
            or_(webhooks.c.paused_until.is_(None), webhooks.c.paused_until <= now),
        )
        .order_by(deliveries.c.due_at, deliveries.c.number)
    )


def _of(delivery: Delivery) -> Update:
    return update(webhooks).where(webhooks.c.id == delivery.webhook.id)
