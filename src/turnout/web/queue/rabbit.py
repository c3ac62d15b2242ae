"""Orders from a queue of RabbitMQ, through FastStream."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from aio_pika.exceptions import AMQPError
from faststream import AckPolicy
from faststream.rabbit import Channel, RabbitBroker, RabbitMessage, RabbitQueue

from turnout.core.service.queues import QueueOptions
from turnout.errors import QueueError
from turnout.web.queue.letters import Inbox, Letter, Refused

__all__ = ["open_rabbit"]

_LOG: Final = logging.getLogger(__name__)
_SECONDS: Final = 10.0
"""That the server may take for an answer."""
_LOOK: Final = 60.0
"""Seconds without a message after which it is made sure that one would come."""
_GONE: Final = None


@asynccontextmanager
async def open_rabbit(
    url: str, options: QueueOptions, *, look: float = _LOOK
) -> AsyncIterator[Inbox]:
    """Connect, and make the queues where they are not there; `QueueError` where that cannot be."""
    arrived: asyncio.Queue[RabbitMessage | None] = asyncio.Queue()

    def gone(*_: object) -> None:
        arrived.put_nowait(_GONE)

    broker = RabbitBroker(
        url,
        logger=_LOG,
        log_level=logging.DEBUG,
        apply_types=False,
        decoder=_as_it_is,
        default_channel=Channel(prefetch_count=1),
        on_close=(gone,),
        timeout=_SECONDS,
    )
    queue = RabbitQueue(options.name, durable=True)

    @broker.subscriber(queue, ack_policy=AckPolicy.MANUAL)
    async def arrive(message: RabbitMessage) -> None:
        arrived.put_nowait(message)

    try:
        with _errors():
            async with asyncio.timeout(_SECONDS):
                await broker.connect()
                await broker.declare_queue(RabbitQueue(options.dead, durable=True))
                await broker.start()
        yield _RabbitInbox(broker, arrived, options, look)
    finally:
        with _errors():
            await broker.stop()


@dataclass(frozen=True, slots=True)
class _RabbitInbox:
    broker: RabbitBroker
    arrived: "asyncio.Queue[RabbitMessage | None]"
    options: QueueOptions
    look: float

    async def next(self) -> Letter:
        """Wait for the next message; one at a time is handed over."""
        while True:
            try:
                async with asyncio.timeout(self.look):
                    message = await self.arrived.get()
            except TimeoutError:
                await self._check()
                continue
            if message is _GONE:
                raise QueueError("RabbitMQ has closed the connection.")
            return self._letter(message)

    async def _check(self) -> None:
        """Raise `QueueError` where the queue was deleted: nobody tells its consumers."""
        with _errors():
            async with (
                asyncio.timeout(_SECONDS),
                (await self.broker.connect()).channel() as channel,
            ):
                found = await channel.declare_queue(self.options.name, passive=True)
        if not found.declaration_result.consumer_count:
            raise QueueError("RabbitMQ has deleted the queue, and made another of its name.")

    def _letter(self, message: RabbitMessage) -> Letter:
        key = message.headers.get("idempotency-key") or message.raw_message.message_id

        async def acknowledge() -> None:
            with _errors():
                await message.ack()

        async def bury(refused: Refused) -> None:
            said = {"code": refused.code, "error": refused.message}
            with _errors():
                await self.broker.publish(
                    message.body,
                    queue=self.options.dead,
                    headers={**said, "idempotency-key": str(key or "")},
                    persist=True,
                    timeout=_SECONDS,
                )
                await message.ack()

        return Letter(message.body, None if key is None else str(key), acknowledge, bury)


async def _as_it_is(message: Any) -> Any:
    """Hand the message itself over: what it holds is read by us."""
    return message


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except (AMQPError, OSError, RuntimeError) as error:
        raise QueueError(f"RabbitMQ: {error!r}") from error
