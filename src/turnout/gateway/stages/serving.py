"""Asking deployments in turn until one answers, whole or streamed."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing

from turnout.core.clock import Clock
from turnout.core.ids import DeploymentId
from turnout.core.usage import Usage
from turnout.errors import GatewayError
from turnout.gateway.catalog import Catalog, Deployment
from turnout.gateway.dialog.conversation import Shape
from turnout.gateway.dialog.events import Ending, Piece, Reply
from turnout.gateway.exchange import ServerEvent, UpstreamError
from turnout.gateway.measure.live import LiveEvidence
from turnout.gateway.ports import Upstream
from turnout.gateway.stages.answers import Answer, estimate_usage
from turnout.gateway.stages.asking import Asked, Asking, Tongues
from turnout.gateway.stages.attempts.fallback import Limits
from turnout.gateway.stages.attempts.observing import observe_answer
from turnout.gateway.stages.attempts.tries import Tries, TryGround
from turnout.gateway.stages.trail import Trail
from turnout.gateway.wire.base import ClientShape, StreamReader, UpstreamShape

__all__ = ["Serving"]

_LINGER = 2.0
"""Seconds of silence after which an answer that is whole is not waited on."""


class Serving:
    """Speaks to the upstream for the engine and notes on the trail what happens."""

    def __init__(
        self,
        upstream: Upstream,
        spoken: Mapping[Shape, UpstreamShape],
        heard: Mapping[Shape, ClientShape],
        catalog: Catalog,
        evidence: LiveEvidence,
        clock: Clock,
        limits: Limits,
    ) -> None:
        self._upstream = upstream
        self._tongues = Tongues(spoken, heard)
        self._catalog = catalog
        self._evidence = evidence
        self._ground = TryGround(catalog, clock, limits, evidence.circuits)

    async def whole(self, trail: Trail, order: Sequence[DeploymentId]) -> Answer:
        """Return the answer of the first deployment that gives one.

        `GatewayError` or the upstream's own `UpstreamError` where none does.
        """
        turn = self._turn(trail, order)
        while True:
            asked = await turn.next()
            try:
                read = await asked.answer(self._upstream)
            except UpstreamError as error:
                turn.tries.failed(error)
                continue
            except asyncio.CancelledError:
                turn.tries.abandoned()
                raise
            trail.repairs = read.repairs
            trail.usage = read.reply.usage or estimate_usage(trail.request, read.reply, None)
            self._answered(turn, read.reply)
            return Answer(read.reply, read.native)

    async def stream(
        self, trail: Trail, order: Sequence[DeploymentId]
    ) -> AsyncGenerator[Piece | Ending, None]:
        """Yield what the client may see as it comes, and the ending last.

        Another deployment is asked only while nothing visible was yielded; a later failure is
        raised.
        """
        turn = self._turn(trail, order)
        while True:
            asked = await turn.next()
            reader = asked.shape.reader(asked.request, asked.deployment)
            held, ending = _Held(), None
            try:
                async with aclosing(self._pieces(trail, asked, reader)) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, Ending):
                            ending = piece
                            break
                        for shown in held.until_visible(piece):
                            turn.tries.first_piece()
                            yield shown
            except UpstreamError as error:
                if held.open:
                    turn.tries.failed(error)
                    continue
                trail.usage = _used_so_far(trail, reader)
                trail.repairs += reader.repairs
                turn.tries.broke_off(error)
                raise _cut(asked.deployment, error) from error
            except (asyncio.CancelledError, GeneratorExit):
                trail.usage = _used_so_far(trail, reader)
                turn.tries.abandoned()
                raise
            reply = reader.so_far()
            trail.repairs += reader.repairs
            trail.usage = reader.usage or estimate_usage(trail.request, reply, None)
            self._answered(turn, reply)
            if ending is not None:
                for late in (*held.rest, *ending.pieces):
                    yield late
                yield ending
            return

    async def _pieces(
        self, trail: Trail, asked: Asked, reader: StreamReader
    ) -> AsyncGenerator[Piece | Ending, None]:
        """Yield what the events amount to, and the ending last."""
        if asked.whole:
            read = await asked.answer(self._upstream)
            trail.repairs = read.repairs
            for piece in reader.read(ServerEvent("", read.native.value)):
                yield piece
        else:
            is_end = asked.shape.is_end
            async with aclosing(asked.events(self._upstream)) as events:
                async for event in events:
                    for piece in reader.read(event):
                        yield piece
                    if is_end(event):
                        async with aclosing(_tail(events, reader)) as rest:
                            async for last in rest:
                                yield last
                        return
        yield reader.end()

    def _turn(self, trail: Trail, order: Sequence[DeploymentId]) -> "_Turn":
        tries = Tries(trail, order, self._ground)
        return _Turn(trail, tries, Asking(trail, self._catalog, self._tongues))

    def _answered(self, turn: "_Turn", reply: Reply) -> None:
        turn.trail.reply = reply
        timing = turn.tries.answered(reply.calls)
        observe_answer(self._evidence, turn.trail, timing, reply, turn.trail.repairs)


class _Held:
    """Keeps pieces back until one comes that a user would notice."""

    def __init__(self) -> None:
        self.open = True
        """Whether nothing was shown yet, so that another deployment may be asked."""
        self.rest: list[Piece] = []
        """What is still kept back."""

    def until_visible(self, piece: Piece) -> Sequence[Piece]:
        """Return what may be shown now."""
        if not self.open:
            return (piece,)
        self.rest.append(piece)
        if not piece.visible:
            return ()
        self.open = False
        shown, self.rest = self.rest, []
        return shown


class _Turn:
    """One request's way from deployment to deployment."""

    def __init__(self, trail: Trail, tries: Tries, asking: Asking) -> None:
        self.trail = trail
        self.tries = tries
        self._asking = asking

    async def next(self) -> Asked:
        """Return whom to ask next, and what; where nobody is left, what the client hears.

        A deployment in whose shape the request cannot be said is passed over.
        """
        while True:
            deployment = await self.tries.next()
            try:
                return self._asking.of(deployment)
            except GatewayError as error:
                self.tries.passed_over(error)


async def _tail(
    events: AsyncGenerator[ServerEvent, None], reader: StreamReader
) -> AsyncGenerator[Piece | Ending, None]:
    """Yield what follows the end of an answer, such as counts or further choices.

    What breaks off there breaks nothing; a connection that stays open is not waited for once
    nothing is missing.
    """
    while True:
        coming = asyncio.ensure_future(anext(events, None))
        ending: Ending | None = None
        pieces: Iterable[Piece] = ()
        try:
            await asyncio.wait({coming}, timeout=_LINGER)
            if not coming.done():
                ending = _ended(reader)
            if ending is None:
                event = await coming
                if event is None:
                    break
                pieces = tuple(reader.read(event))
        except UpstreamError:
            break
        finally:
            coming.cancel()
            await asyncio.wait({coming})
        for piece in pieces:
            yield piece
        if ending is not None:
            yield ending
            return
    yield reader.end()


def _ended(reader: StreamReader) -> Ending | None:
    try:
        return reader.end()
    except UpstreamError:
        return None


def _used_so_far(trail: Trail, reader: StreamReader) -> Usage:
    return estimate_usage(trail.request, reader.so_far(), reader.usage)


def _cut(deployment: Deployment, error: UpstreamError) -> GatewayError | UpstreamError:
    if error.body is not None:
        return error
    return GatewayError(
        error.sentence(f"{deployment.id} began to answer, then"),
        status=504 if error.timed_out else 502,
        code="stream_cut",
        mend="The answer so far is incomplete; send the request again.",
    )
