"""Sending of what waits for webhooks: at least once, later where it is not taken."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import groupby
from typing import Final

from turnout.core.clock import Clock
from turnout.core.govern.webhooks import Delivery, Webhook
from turnout.errors import ConfigError, StoreError
from turnout.gateway.notices.ports import DeliveryStore
from turnout.gateway.notices.posting import NotTakenError, Poster
from turnout.gateway.notices.signing import message_of, signed_headers

__all__ = ["WebhookSender"]

_AT_ONCE: Final = 50
_CLAIMED_SECONDS: Final = 900.0
"""Longer than it takes to send all that is claimed at once, one after the other."""
_CLOSING_SECONDS: Final = 3.0
_FIRST_PAUSE: Final = 5.0
_LONGEST_PAUSE: Final = 7_200.0
_GIVEN_UP: Final = timedelta(days=3)
"""After which a happening is no news any more."""

_LOG: Final = logging.getLogger(__name__)


class WebhookSender:
    """Sends deliveries of the store, whoever put them there, until it is closed."""

    def __init__(
        self,
        store: DeliveryStore,
        poster: Poster,
        secret_of: Callable[[Webhook], str | None],
        clock: Clock,
        *,
        every: float = 5.0,
    ) -> None:
        """`every` is after how many seconds it looks by itself."""
        self._store = store
        self._poster = poster
        self._secret_of = secret_of
        self._clock = clock
        self._every = every
        self._woken = asyncio.Event()
        self._closing = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Send from now on; only where a loop runs."""
        self._task = asyncio.create_task(self._run())

    def wake(self) -> None:
        """Look at once whether there is something to send."""
        self._woken.set()

    async def close(self) -> None:
        """Stop once what is being sent was sent; the rest is sent after the next start."""
        if self._task is not None:
            self._closing = True
            self._woken.set()
            await asyncio.wait([self._task], timeout=_CLOSING_SECONDS)
            self._task.cancel()
            await asyncio.wait([self._task])

    async def send_due(self) -> int:
        """Send what is due now and return how many deliveries that were, taken or not."""
        claimed = await self._store.claim(
            self._clock.now(), limit=_AT_ONCE, seconds=_CLAIMED_SECONDS
        )
        by_webhook = sorted(claimed, key=_webhook)
        groups = [tuple(group) for _, group in groupby(by_webhook, key=_webhook)]
        await asyncio.gather(*(self._send_all(group) for group in groups))
        return len(claimed)

    async def _run(self) -> None:
        while not self._closing:
            self._woken.clear()
            sent = 0
            with suppress(StoreError):
                sent = await self.send_due()
            if not sent:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._every):
                        await self._woken.wait()

    async def _send_all(self, deliveries: Sequence[Delivery]) -> None:
        """Send what waits for one webhook, in order; where one fails, the rest waits with it."""
        for delivery in deliveries:
            try:
                await self._send(delivery)
            except NotTakenError as error:
                await self._failed(delivery, str(error))
                return
            await self._store.delivered(delivery, self._clock.now())

    async def _send(self, delivery: Delivery) -> None:
        webhook, body = delivery.webhook, message_of(delivery.happening)
        try:
            secret = self._secret_of(webhook)
        except ConfigError as error:
            raise NotTakenError(error.message) from error
        if not secret:
            raise NotTakenError(f"{webhook.secret_variable} is not set")
        headers = signed_headers(secret, delivery.happening.id, self._clock.now(), body)
        await self._poster.post(webhook.url, headers, body, allow_private=webhook.allow_private)

    async def _failed(self, delivery: Delivery, why: str) -> None:
        now = self._clock.now()
        pause = min(_FIRST_PAUSE * 4 ** min(delivery.failures, 10), _LONGEST_PAUSE)
        again_at = now + timedelta(seconds=pause)
        oldest = now - _GIVEN_UP
        _LOG.warning("%s did not take a message: %s", delivery.webhook.id, why)
        await self._store.failed(delivery, why, now, again_at=again_at, oldest=oldest)


def _webhook(delivery: Delivery) -> str:
    return delivery.webhook.id
