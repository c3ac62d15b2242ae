"""Takes orders from a queue: acknowledged once the run is durable, and not before."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, Self

from pydantic import ValidationError

from turnout.core.clock import Clock
from turnout.core.json import doubled_name
from turnout.core.observe.metrics import Metrics
from turnout.core.service.orders import Submitted
from turnout.errors import (
    ConflictError,
    GatewayError,
    NotFoundError,
    QueueError,
    StoreError,
    TurnoutError,
)
from turnout.gateway.config.tables import dotted
from turnout.web.queue.counting import QueueMetrics
from turnout.web.queue.letters import Letter, OpenInbox, Refused
from turnout.web.runs.orders import RunIn

__all__ = ["Consumer", "Submit"]

Submit = Callable[[RunIn, str | None], Awaitable[Submitted]]
"""Takes an order in under an idempotency key, as `POST /v1/runs` does."""

_LARGEST: Final = 4 << 20
"""Bytes of a message: an order is never larger."""
_NO_KEY: Final = (
    "It has neither an idempotency key nor a message id: delivered twice, it would be two runs."
)
_LATER: Final = frozenset({401, 429})
"""Answers that are none to the order itself: our key is shut, or too many runs wait."""
_OURS: Final = 500
_SHOWN: Final = 100
_AGAIN: Final = 1.0
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 30.0
_LOG: Final = logging.getLogger(__name__)


class Consumer:
    """Takes one message after the other, from `async with` on until its end.

    While an order cannot be taken in, be it that the database is away or that too many runs wait,
    its message stays where it is and no other is asked for. A message that is no order is buried.
    """

    def __init__(
        self, open_inbox: OpenInbox, submit: Submit, clock: Clock, metrics: Metrics
    ) -> None:
        self._open = open_inbox
        self._submit = submit
        self._clock = clock
        self._seen = QueueMetrics(metrics)
        self._working: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._working = asyncio.create_task(self._work())
        self._working.add_done_callback(_tell_of_defect)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        working = self._working
        while working is not None and not working.done():
            # What speaks to the server may lose a cancellation that an answer comes together with.
            working.cancel()
            await asyncio.wait({working}, timeout=_AGAIN)

    @property
    def working(self) -> bool:
        """Whether messages are taken, or will be once the server is there: no defect ended it."""
        return self._working is not None and not self._working.done()

    async def _work(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                async with self._open() as inbox:
                    pause = _FIRST_PAUSE
                    self._seen.connected(True)
                    while True:
                        await self._take(await inbox.next())
            except QueueError as error:
                _LOG.warning("No orders come from the queue: %s", error)
            finally:
                self._seen.connected(False)
            await self._clock.sleep(pause)
            pause = min(2.0 * pause, _LONGEST_PAUSE)

    async def _take(self, letter: Letter) -> None:
        order = _read(letter)
        refused = order if isinstance(order, Refused) else await self._order(order, letter.key)
        if refused is None:
            await letter.acknowledge()
            self._seen.settled("taken")
        else:
            _LOG.warning("A message of the queue is no order: %s", refused.message)
            await letter.bury(refused)
            self._seen.settled("refused")

    async def _order(self, order: RunIn, key: str | None) -> Refused | None:
        """Take an order in, however long that takes; what cannot be taken comes back."""
        try:
            return await self._ordered(order, key)
        finally:
            self._seen.delayed(False)

    async def _ordered(self, order: RunIn, key: str | None) -> Refused | None:
        pause = _FIRST_PAUSE
        while True:
            try:
                submitted = await self._submit(order, key)
            except TurnoutError as error:
                if not _passes(error):
                    code = error.code if isinstance(error, GatewayError) else "invalid_request"
                    return Refused(code, str(error))
                self._seen.delayed(True)
                _LOG.warning("An order of the queue has to wait: %s", error)
            else:
                _LOG.info("%s came from the queue", submitted.run.run_id)
                return None
            await self._clock.sleep(pause)
            pause = min(2.0 * pause, _LONGEST_PAUSE)


def _tell_of_defect(working: "asyncio.Task[None]") -> None:
    if not working.cancelled() and (error := working.exception()) is not None:
        _LOG.error("A defect of Turnout ended what takes orders from the queue", exc_info=error)


def _read(letter: Letter) -> RunIn | Refused:
    if letter.key is None:
        return Refused("invalid_request", _NO_KEY)
    if len(letter.body) > _LARGEST:
        return Refused("request_too_large", f"It is larger than {_LARGEST >> 20} MiB.")
    name = doubled_name(letter.body)
    if name is not None:
        return Refused("invalid_request", f"It has the name {name[:_SHOWN]!r} twice in one object.")
    try:
        return RunIn.model_validate_json(letter.body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = dotted("", first["loc"])
        return Refused("invalid_request", f"{f'`{place}`: ' if place else ''}{first['msg']}.")


def _passes(error: TurnoutError) -> bool:
    """Whether an order may be taken in later."""
    match error:
        case ConflictError() | NotFoundError():
            return False
        case StoreError():
            return True
        case GatewayError(status=status):
            return status in _LATER or status >= _OURS
        case _:
            return False
