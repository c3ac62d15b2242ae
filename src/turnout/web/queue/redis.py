"""Orders from a stream of Redis, through FastStream."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from faststream.redis import RedisBroker, RedisStreamMessage, StreamSub
from faststream.redis.parser import BinaryMessageFormatV1
from faststream.redis.subscriber.usecases import StreamSubscriber
from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from turnout.core.json import as_object
from turnout.core.service.queues import QueueOptions
from turnout.errors import QueueError
from turnout.web.queue.letters import Inbox, Letter, Refused

__all__ = ["open_redis"]

_LOG: Final = logging.getLogger(__name__)
_BLOCK: Final = 5.0
"""Seconds that one look for messages waits."""
_CONNECT: Final = 5.0
_IDLE_MS: Final = 60_000
"""After which a message that another member has not acknowledged is handed to us."""
_MOST_DEAD: Final = 10_000
_BODY: Final = b"body"
_KEY: Final = b"idempotency-key"
_ENVELOPE: Final = b"__data__"
"""The one field of what FastStream has published."""


@asynccontextmanager
async def open_redis(
    url: str, options: QueueOptions, *, idle_ms: int = _IDLE_MS
) -> AsyncIterator[Inbox]:
    """Connect, and join the group; `QueueError` where that cannot be."""
    broker = RedisBroker(
        url,
        logger=_LOG,
        log_level=logging.DEBUG,
        apply_types=False,
        parser=_read,
        socket_connect_timeout=_CONNECT,
        socket_timeout=None,
    )
    name, group, us = options.name, options.group, socket.gethostname()
    fresh = broker.subscriber(stream=StreamSub(name, group=group, consumer=us))
    left = broker.subscriber(
        stream=StreamSub(name, group=group, consumer=us, min_idle_time=idle_ms)
    )
    try:
        async with _asking():
            client = await broker.connect()
            await _make_group(client, options)
            await broker.start()
        yield _RedisInbox(client, fresh, left, options)
    finally:
        await broker.stop()


@dataclass(frozen=True, slots=True)
class _RedisInbox:
    client: Redis
    fresh: StreamSubscriber
    """Hands over what nobody has seen."""
    left: StreamSubscriber
    """Hands over what somebody was given and never acknowledged."""
    options: QueueOptions

    async def next(self) -> Letter:
        """Wait for the next message, what was left by others first."""
        while True:
            async with _asking():
                found = await self.left.get_one() or await self.fresh.get_one(timeout=_BLOCK)
            if found is not None:
                return self._letter(found)

    def _letter(self, message: RedisStreamMessage) -> Letter:
        place = message.raw_message["message_ids"][0]
        key = str(message.headers.get("idempotency-key") or f"{self.options.name}:{place.decode()}")

        async def settle(dead: dict[Any, Any] | None = None) -> None:
            async with _asking(), self.client.pipeline(transaction=True) as at_once:
                if dead is not None:
                    at_once.xadd(self.options.dead, dead, maxlen=_MOST_DEAD)
                at_once.xack(self.options.name, self.options.group, place)
                # Acknowledged alone it would stay in the stream for ever.
                at_once.xdel(self.options.name, place)
                await at_once.execute()

        async def bury(refused: Refused) -> None:
            said = {"code": refused.code, "error": refused.message}
            await settle({**message.raw_message["data"], **said})

        return Letter(message.body, key, settle, bury)


async def _read(message: Any, original: Any) -> Any:
    """Read a message of plain fields, or one that FastStream has published, whatever it holds."""
    fields = message["data"]
    if _ENVELOPE in fields:
        body, headers = BinaryMessageFormatV1.parse(fields[_ENVELOPE])
    else:
        key = fields.get(_KEY, b"").decode(errors="replace")
        body, headers = fields.get(_BODY, b""), {"idempotency-key": key}
    read = await original({**message, "data": {_ENVELOPE: b"{}"}})
    read.raw_message, read.body = message, body
    read.headers = dict(as_object(headers))
    return read


async def _make_group(client: Redis, options: QueueOptions) -> None:
    """Make the group where it is not there: it begins with the oldest message."""
    try:
        await client.xgroup_create(options.name, options.group, id="0", mkstream=True)
    except ResponseError as error:
        if "BUSYGROUP" not in str(error):
            raise


@asynccontextmanager
async def _asking() -> AsyncIterator[None]:
    """Bound what the server may take; the client's own bound loses cancellations before 3.12."""
    try:
        async with asyncio.timeout(_BLOCK + _CONNECT):
            yield
    except (RedisError, OSError) as error:
        raise QueueError(f"Redis: {str(error) or 'it does not answer'}") from error
