"""Webhooks as people add and remove them."""

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from turnout.core.clock import Clock
from turnout.core.govern.happenings import HappeningKind
from turnout.core.govern.webhooks import Webhook, WebhookState
from turnout.errors import UsageError
from turnout.gateway.notices.ports import WebhookStore
from turnout.gateway.notices.posting import check_url

__all__ = ["MOST_WEBHOOKS", "WebhookDesk", "WebhookOrder"]

MOST_WEBHOOKS: Final = 50
_VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]{0,99}", re.ASCII)
_LONGEST_PROJECT: Final = 200


@dataclass(frozen=True, slots=True)
class WebhookOrder:
    """A webhook that somebody wants; the fields are those of `Webhook`."""

    url: str
    secret_variable: str
    kinds: tuple[HappeningKind, ...] = ()
    project: str = ""
    allow_private: bool = False


class WebhookDesk:
    """Checks what is asked for before it is kept."""

    def __init__(self, store: WebhookStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def add(self, order: WebhookOrder, *, author: str) -> Webhook:
        """Add a webhook and return it; `UsageError` where it cannot be one."""
        check_url(order.url, allow_private=order.allow_private)
        if not _VARIABLE.fullmatch(order.secret_variable):
            raise UsageError(
                f"{order.secret_variable[:40]!r} is no name of a variable.",
                mend="Name the environment variable of the gateway that holds the secret.",
            )
        if len(order.project) > _LONGEST_PROJECT:
            raise UsageError("The name of the project is too long.")
        if len(await self._store.all()) >= MOST_WEBHOOKS:
            raise UsageError(
                f"There are {MOST_WEBHOOKS} webhooks already.", mend="Remove one first."
            )
        webhook = Webhook(
            id=f"hook-{secrets.token_hex(4)}",
            url=order.url,
            secret_variable=order.secret_variable,
            kinds=tuple(dict.fromkeys(order.kinds)),
            project=order.project,
            allow_private=order.allow_private,
            created_by=author,
        )
        await self._store.add(webhook, self._clock.now())
        return webhook

    async def remove(self, webhook_id: str) -> None:
        """Remove a webhook and what waits for it; `NotFoundError` where there is none."""
        await self._store.remove(webhook_id)

    async def retry(self, webhook_id: str) -> bool:
        """Send what waits for a webhook at once; False where it has not failed.

        `NotFoundError` where there is none.
        """
        return await self._store.again(webhook_id, self._clock.now())

    async def all(self) -> Sequence[WebhookState]:
        """Return every webhook, oldest first, and how its deliveries fare."""
        return await self._store.all()
