"""One answer for all requests that are sent under one idempotency key."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

import orjson

from turnout.core.clock import Clock
from turnout.core.govern.closing import KeptReply
from turnout.core.ids import RequestId
from turnout.core.policies import Policy
from turnout.errors import GatewayError, StoreError
from turnout.gateway.dialog.events import Ending, Piece
from turnout.gateway.dialog.fold import events_of
from turnout.gateway.exchange import (
    Caller,
    Completion,
    InferenceRequest,
    StreamDelta,
    StreamEnd,
)
from turnout.gateway.ports import ReplyStore
from turnout.gateway.stages.completion_text import read_completion, write_completion

__all__ = ["Claim", "Replayed", "Replays", "digest_of", "stream_of"]

_LONGEST_KEY = 255
_LEASE = timedelta(seconds=15)
"""How long a claim stands after the last sign of life of whoever made it."""
_SIGN_OF_LIFE = 5.0
"""Seconds between signs of life."""
_LOOKS = (0.05, 0.1, 0.2, 0.4)
"""Seconds between looks at a claim of another process; the last one for all that follow."""
_SAME_EITHER_WAY = frozenset({"stream", "stream_options"})
"""Fields that say how the answer is sent, not what it is."""


class Replayed(NamedTuple):
    """An answer that was given before."""

    completion: Completion
    request_id: RequestId
    """Of the request that it was the answer to."""


@dataclass(slots=True)
class Claim:
    """A request's standing under its idempotency key; without a key it stands alone."""

    replay: Replayed | None = None
    """The answer to give; None: the request is to be served."""
    claimed: KeptReply | None = None
    """What is held; None where there is no key, or an answer."""
    lapsed: RequestId | None = None
    """The request whose claim had lapsed before: its gateway died, and it left no receipt."""
    settled: bool = False
    """Whether what becomes of the key is written with the request's receipt."""

    def keeps(self, completion: Completion, policy: Policy, now: datetime) -> KeptReply | None:
        """Return the answer as it is kept for those who send the request again."""
        if self.claimed is None:
            return None
        self.settled = True
        until = now + timedelta(hours=policy.keep_replies_hours)
        payload = write_completion(completion, self.claimed.holder)
        return replace(self.claimed, payload=payload, until=until)

    def frees(self) -> KeptReply | None:
        """Return that there is no answer to keep: whoever sends the request again is served."""
        if self.claimed is not None:
            self.settled = True
        return self.claimed


_ALONE = nullcontext(Claim())


@dataclass(slots=True)
class _Running:
    claim: KeptReply
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class Replays:
    """Claims of idempotency keys: the first to come is served, the others get its answer.

    They wait for it while it is under way, here or in another process. A claim whose process
    died lapses, and one of those who wait is served instead.
    """

    def __init__(
        self, store: ReplyStore, clock: Clock, *, sign_of_life: float = _SIGN_OF_LIFE
    ) -> None:
        """Tell other processes every `sign_of_life` seconds that claims are being served."""
        self._store = store
        self._sign_of_life = sign_of_life
        self._clock = clock
        self._running: dict[tuple[str, str], _Running] = {}
        self._living: asyncio.Task[None] | None = None

    def claim(
        self, caller: Caller, request: InferenceRequest, request_id: RequestId
    ) -> AbstractAsyncContextManager[Claim]:
        """Hold a request's idempotency key while the block runs, or have its answer.

        `GatewayError`: 409 where the key stands for another request, 400 where it is none.
        """
        key = request.idempotency_key
        return _ALONE if key is None else self._hold(caller, request, request_id, key)

    @asynccontextmanager
    async def _hold(
        self, caller: Caller, request: InferenceRequest, request_id: RequestId, key: str
    ) -> AsyncIterator[Claim]:
        _check_key(key)
        wanted = KeptReply(caller.key, key, digest_of(request), "", self._clock.now(), request_id)
        claim = await self._take(wanted)
        if claim.replay is not None:
            yield claim
            return
        place = wanted.scope, wanted.idempotency_key
        running = self._running[place]
        try:
            yield claim
        finally:
            del self._running[place]
            running.ended.set()
            if not claim.settled:
                await asyncio.shield(self._store.free(wanted))

    async def close(self) -> None:
        """Stop giving signs of life."""
        if self._living is not None:
            self._living.cancel()
            await asyncio.wait({self._living})

    async def _take(self, wanted: KeptReply) -> Claim:
        """Return the answer once there is one, or that the key is ours now."""
        place, looks = (wanted.scope, wanted.idempotency_key), 0
        while True:
            here = self._running.get(place)
            if here is not None:
                _check_same(here.claim.digest, wanted.digest)
                await here.ended.wait()
                continue
            # Noted before the store is asked: of two that come together, one asks.
            running = self._running[place] = _Running(wanted)
            claimed = False
            try:
                now = self._clock.now()
                standing = await self._store.claim(replace(wanted, until=now + _LEASE), now)
                claimed = standing.state == "claimed"
            finally:
                if not claimed:
                    del self._running[place]
                    running.ended.set()
            if claimed:
                self._give_signs_of_life()
                return Claim(None, wanted, standing.lapsed)
            _check_same(standing.digest, wanted.digest)
            if standing.state == "kept":
                return Claim(Replayed(*read_completion(standing.payload)))
            await self._clock.sleep(_LOOKS[min(looks, len(_LOOKS) - 1)])
            looks += 1

    def _give_signs_of_life(self) -> None:
        if self._living is None or self._living.done():
            self._living = asyncio.create_task(self._live())

    async def _live(self) -> None:
        while self._running:
            await asyncio.sleep(self._sign_of_life)
            until = self._clock.now() + _LEASE
            claims = [replace(running.claim, until=until) for running in self._running.values()]
            if claims:
                # Several may be missed before a claim lapses.
                with suppress(StoreError):
                    await self._store.renew(claims)


def stream_of(completion: Completion) -> tuple[Sequence[StreamDelta], StreamEnd]:
    """Return a whole answer as the pieces and the end of a stream."""
    reply, model = completion.reply, completion.report.model
    pieces = [StreamDelta(Piece((event,)), model) for event in events_of(reply.parts)]
    ending = Ending(reply.finish, stop_sequence=reply.stop_sequence)
    return pieces, StreamEnd(ending, completion.usage, completion.report)


def digest_of(request: InferenceRequest) -> str:
    """Return what two requests share that ask for the same, streamed or not."""
    ask = request.ask
    content = [
        request.shape,
        {name: value for name, value in request.body.items() if name not in _SAME_EITHER_WAY},
        [request.model, request.session, request.thinking, request.previous],
        [ask.optimize, ask.task, ask.policy, ask.tools, ask.read_only, dict(ask.mcp_tools)],
    ]
    encoded = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(encoded).hexdigest()


def _check_key(key: str) -> None:
    if not (0 < len(key) <= _LONGEST_KEY and key.isprintable()):
        raise GatewayError(
            f"`Idempotency-Key` must be 1 to {_LONGEST_KEY} printable characters.",
            status=400,
            code="invalid_request",
            param="Idempotency-Key",
        )


def _check_same(known: str, wanted: str) -> None:
    if known != wanted:
        raise GatewayError(
            "The idempotency key was sent before with another request.",
            status=409,
            code="idempotency_conflict",
            mend="Send a new key with each new request.",
            param="Idempotency-Key",
        )
