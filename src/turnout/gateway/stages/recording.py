"""What a request leaves behind, written down whatever becomes of it."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from turnout.core.clock import Clock
from turnout.core.govern.closing import Closing, KeptReply
from turnout.core.ids import RequestId
from turnout.core.money import Micros
from turnout.core.policies import Policy
from turnout.errors import GatewayError, StoreError, TurnoutError
from turnout.gateway.exchange import Completion, UpstreamError
from turnout.gateway.keys.slots import Slots
from turnout.gateway.measure.warm import WarmCaches
from turnout.gateway.ports import (
    AffinityStore,
    Books,
    Holder,
    Noticing,
    ReceiptStore,
    ResponseStore,
)
from turnout.gateway.stages.affinity import made_calls, scope_of
from turnout.gateway.stages.replay import Claim, Replays
from turnout.gateway.stages.stored import stored_again, stored_response
from turnout.gateway.stages.trail import Trail

__all__ = ["EngineStores", "Record", "Recorder", "Strangers"]

_STRANGERS: Final = 300
"""Receipts a minute for requests of callers that nobody knows."""

_PATIENCE: Final = 60.0
"""Seconds for which an answer is held that cannot be written."""
_PAUSE: Final = 0.25

_MOST_OWED: Final = 1_000
"""Receipts that wait in memory for room; no model is asked meanwhile, so hardly more come."""
_LOG: Final = logging.getLogger(__name__)

_FAILURES: Final = (TurnoutError, UpstreamError, asyncio.CancelledError)


@dataclass(frozen=True, slots=True)
class EngineStores:
    """Where the gateway keeps what must outlast a request."""

    books: Books
    receipts: ReceiptStore
    affinity: AffinityStore
    responses: ResponseStore
    replays: Replays


@dataclass(slots=True)
class Record:
    """What becomes of a request and its idempotency key."""

    claim: Claim | None = None
    """None until the key is claimed."""
    replay: Completion | None = None
    """The answer that was given before; None: the request is to be served."""
    completion: Completion | None = None
    """The answer, once it is there."""

    def kept(self, policy: Policy | None, now: datetime) -> KeptReply | None:
        """Return what is to be kept under the key: the answer, or that there is none."""
        if self.claim is None or self.replay is not None:
            return None
        if self.completion is None or policy is None:
            return self.claim.frees()
        return self.claim.keeps(self.completion, policy, now)


class Recorder:
    """Sees to it that every request leaves one receipt, written before its last byte goes out."""

    def __init__(
        self, stores: EngineStores, warm: WarmCaches, noticing: Noticing, clock: Clock
    ) -> None:
        self._stores = stores
        self._warm = warm
        self._noticing = noticing
        self._clock = clock
        self._slots = Slots()
        self._settling: set[asyncio.Task[None]] = set()
        self._unwritable = False
        self._owed: deque[Closing] = deque()
        self._owing: asyncio.Task[None] | None = None

    @property
    def writable(self) -> bool:
        """Whether what was to be written last could be."""
        return not self._unwritable

    @asynccontextmanager
    async def recorded(self, trail: Trail) -> AsyncIterator[Record]:
        """Claim the request's key, note how the block ends, and write it down whatever happens."""
        record = Record()
        try:
            self._check_store()
            with self._slots.held(trail.caller):
                async with self._stores.replays.claim(
                    trail.caller, trail.request, trail.request_id
                ) as claim:
                    record.claim = claim
                    if claim.replay is not None:
                        trail.replay_of = claim.replay.request_id
                        record.replay = claim.replay.completion
                        trail.ends("ok", 200, None)
                    try:
                        if claim.lapsed is not None:
                            await self._write_lost(trail, claim.lapsed)
                        yield record
                    except (*_FAILURES, GeneratorExit) as error:
                        _note(trail, error)
                        raise
                    finally:
                        await self.settle(trail, record)
        except _FAILURES as error:
            if record.claim is None:
                _note(trail, error)
                await self.settle(trail, record)
            raise

    async def settle(self, trail: Trail, record: Record) -> None:
        """Write the receipt and what goes with it; a cancellation does not stop the writing."""
        if trail.replay_of is None:
            # Nothing is waited for but the books, which are closed in any case.
            await self._write(trail, record)
            return
        writing = asyncio.create_task(self._write(trail, record))
        self._settling.add(writing)
        writing.add_done_callback(self._settling.discard)
        await asyncio.shield(writing)

    async def close(self) -> None:
        """Wait for what is being written."""
        if self._settling:
            await asyncio.wait(self._settling)
        await self._stores.books.finish()
        if self._owing is not None:
            self._owing.cancel()
            await asyncio.wait({self._owing})
        await self._pay()
        for closing in self._owed:
            _lost(closing)

    async def _write(self, trail: Trail, record: Record) -> None:
        receipt = trail.receipt(self._clock.monotonic())
        closing = Closing(
            receipt,
            trail.charges,
            trail.worst,
            trail.cost or Micros(0),
            kept=record.kept(trail.policy, trail.at),
        )
        if trail.status == "ok":
            closing = await self._served(closing, trail)
        try:
            await self._close(closing)
        finally:
            self._noticing.saw(receipt)
        self._unwritable = False

    async def _close(self, closing: Closing) -> None:
        """Write what a request leaves behind; where that cannot be, `StoreError`, and later."""
        try:
            await self._hold(closing)
        except (StoreError, asyncio.CancelledError):
            # Of a write that nobody waits for any more nobody hears whether it was done.
            self._owe(closing)
            raise

    async def _hold(self, closing: Closing) -> None:
        """Write it; `StoreError` where that cannot be.

        An answer that a later request may be given again is held over an outage: it is paid for.
        """
        until = self._clock.monotonic() + _PATIENCE
        holds = closing.kept is not None and bool(closing.kept.payload)
        while True:
            try:
                await self._stores.books.close(closing)
            except StoreError:
                self._unwritable = True
                if not holds or self._clock.monotonic() >= until:
                    raise
            else:
                return
            await self._clock.sleep(_PAUSE)
            # What seemed to fail may have been committed.
            with suppress(StoreError):
                if await self._stores.receipts.get(closing.receipt.request_id) is not None:
                    return

    def _owe(self, closing: Closing) -> None:
        """Keep what has cost something until it can be written; else one, to see when that is."""
        if self._owed and not (closing.receipt.attempts or closing.charges):
            return
        if len(self._owed) >= _MOST_OWED:
            _lost(closing)
            return
        self._owed.append(closing)
        if self._owing is None or self._owing.done():
            self._owing = asyncio.create_task(self._pay_all())

    async def _pay_all(self) -> None:
        while self._owed:
            await self._clock.sleep(_PAUSE)
            await self._pay()
            # One that can never be written is not in the way of the others.
            self._owed.rotate(-1)

    async def _pay(self) -> None:
        """Write what is owed, as far as that can be."""
        with suppress(StoreError):
            while self._owed:
                closing = self._owed[0]
                # What seemed to fail may have been committed.
                if await self._stores.receipts.get(closing.receipt.request_id) is None:
                    await self._stores.books.close(closing)
                    self._unwritable = False
                self._owed.popleft()
            self._unwritable = False

    async def _write_lost(self, trail: Trail, lost: RequestId) -> None:
        """Write the receipt of a request whose gateway died: what became of it is unknown.

        What was reserved for it stays so: it may have cost as much.
        """
        receipt = trail.receipt_of_lost(lost)
        await self._stores.books.close(Closing(receipt))
        self._noticing.saw(receipt)

    def _check_store(self) -> None:
        """Refuse (503) after a write that failed: a model would be paid for an answer not given.

        What is still to be written finds out whether writing works again.
        """
        if self._unwritable:
            raise GatewayError(
                "The gateway cannot write its records.",
                status=503,
                code="store_unavailable",
                mend="Its operator has to look at the disk of its state folder.",
                retry_after=1,
            )

    async def _served(self, closing: Closing, trail: Trail) -> Closing:
        """Add what only an answer leaves behind."""
        caller, request, serving, reply = trail.caller, trail.request, trail.serving, trail.reply
        if trail.replay_of is not None and request.keeps:
            again = await stored_again(
                self._stores.responses, caller, trail.request_id, replay_of=trail.replay_of
            )
            return replace(closing, stored=again)
        if serving is None or reply is None:
            return closing
        if request.session is not None and request.caching:
            self._warm.note(scope_of(caller, request.session), serving, trail.usage)
        holder = Holder(serving.model, serving.id)
        made = made_calls(caller, request, reply, serving)
        stored = stored_response(caller, request, trail.request_id, reply, holder)
        return replace(closing, made=made, stored=stored)


class Strangers:
    """How many refusals of unknown callers may still be written down this minute."""

    def __init__(self, most: int = _STRANGERS) -> None:
        self._most = most
        self._minute = -1
        self._count = 0

    def admit(self, now: float) -> bool:
        """Count one at `now`, in monotonic seconds; return whether it is to be written."""
        minute = int(now // 60)
        if minute != self._minute:
            self._minute, self._count = minute, 0
        self._count += 1
        return self._count <= self._most


def _lost(closing: Closing) -> None:
    receipt = closing.receipt
    _LOG.error(
        "The receipt of %s, key %r, %d micro-USD, could not be written and is lost.",
        receipt.request_id,
        receipt.key,
        closing.actual,
    )


def _note(trail: Trail, error: BaseException) -> None:
    if isinstance(error, TurnoutError | UpstreamError):
        trail.fails(error)
    else:
        trail.ends("cancelled", 499, "client_gone")
