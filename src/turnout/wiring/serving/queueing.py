"""Orders that come from a queue."""

import importlib
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from turnout.core.govern.audit import Audited
from turnout.core.observe.metrics import Metrics
from turnout.core.service.orders import Submitted
from turnout.core.service.queues import QueueOptions
from turnout.errors import ConfigError, GatewayError, MissingExtraError
from turnout.gateway.app import Ready
from turnout.gateway.exchange import Caller
from turnout.gateway.keys.ring import KeyRing
from turnout.settings import Settings, secret_named
from turnout.store.audit import AuditStore
from turnout.web.queue.consumer import Consumer
from turnout.web.queue.letters import OpenInbox
from turnout.web.runs.callers import Scope, member_scope
from turnout.web.runs.intake import RunParts, take
from turnout.web.runs.orders import RunIn
from turnout.wiring.gateway import Ground
from turnout.wiring.serving.forging import check_orders

__all__ = ["check_queue", "open_queue"]

_ACTOR: Final = "queue"
_HERE: Final = {"host": "localhost"}
"""What a program of this machine sends that has no key."""
_KINDS: Final = {"redis": "redis", "rediss": "redis", "amqp": "rabbit", "amqps": "rabbit"}
"""Schemes of URLs, and the module that speaks to such a server."""


def check_queue(settings: Settings) -> QueueOptions:
    """Return the queue that is set up; `ConfigError` where there is none."""
    queue = settings.service.queue
    if queue is None:
        raise ConfigError(
            "No queue is set up to take orders from.",
            mend="Write a table `[service.queue]` with `url_env`, the variable that holds its URL.",
        )
    return queue


async def open_queue(ground: Ground, runs: RunParts, ring: KeyRing, metrics: Metrics) -> Ready:
    """Take orders from the queue until the ground's stack ends; return whether it still does.

    A queue that is away is waited for. `ConfigError` for an address or a key that cannot be used,
    `MissingExtraError` without the extra.
    """
    queue = check_queue(ground.settings)
    submitting = _Submitting(runs, ring, queue.key, ground)
    check_orders(submitting.caller, "service.queue.key")
    consumer = Consumer(_inbox_of(queue), submitting.submit, ground.clock, metrics)
    await ground.stack.enter_async_context(consumer)
    return lambda: consumer.working


@dataclass(frozen=True, slots=True)
class _Submitting:
    runs: RunParts
    ring: KeyRing
    key: str | None
    ground: Ground

    def scope(self) -> Scope:
        """Return whom the runs are charged to; `GatewayError` while that key opens nothing."""
        return member_scope(self.caller())

    def caller(self) -> Caller:
        """Return the holder of the key; `GatewayError` (401) where it opens nothing."""
        ring, key = self.ring, self.key
        return ring.authenticate(_HERE) if key is None else ring.named(key)

    async def submit(self, order: RunIn, key: str | None) -> Submitted:
        """Take an order in, as the API does."""
        try:
            scope = self.scope()
        except GatewayError as error:
            # It says nothing of the order, which waits until the key opens again.
            raise GatewayError(error.message, status=503, code=error.code) from error
        submitted = await take(self.runs, scope, order, key)
        if submitted.created:
            run_id, ground = submitted.run.run_id, self.ground
            change = Audited(ground.clock.now(), _ACTOR, scope.project, "order_run", run_id)
            await AuditStore(ground.database).add(change)
        return submitted


def _inbox_of(queue: QueueOptions) -> OpenInbox:
    url = secret_named(queue.url_variable, what="the address of the queue")
    kind = _KINDS.get(urlsplit(url).scheme)
    if kind is None:
        raise ConfigError(
            f"{queue.url_variable} holds no address of a queue.",
            mend=f"It begins with one of: {', '.join(f'{scheme}://' for scheme in _KINDS)}.",
        )
    try:
        module: Any = importlib.import_module(f"turnout.web.queue.{kind}")
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"Orders from a queue take the package {error.name}.",
            mend="Run `pip install 'turnout[queue]'`.",
        ) from error
    opener: OpenInbox = partial(getattr(module, f"open_{kind}"), url, queue)
    return opener
