"""Asking deployments in turn until one answers, whole or streamed."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from turnout.core.clock import Clock
from turnout.core.ids import DeploymentId
from turnout.core.json import JsonObject
from turnout.core.usage import Usage
from turnout.errors import GatewayError
from turnout.gateway.catalog import Catalog, Deployment
from turnout.gateway.exchange import InferenceRequest, UpstreamError
from turnout.gateway.measure.live import LiveEvidence
from turnout.gateway.ports import Upstream
from turnout.gateway.repair import needs_whole_reply, prepare_body, repair_reply
from turnout.gateway.stages.answers import (
    as_chunk,
    calls_of,
    estimate_usage,
    first_message,
    not_streamed,
)
from turnout.gateway.stages.fallback import Limits
from turnout.gateway.stages.observing import observe_answer
from turnout.gateway.stages.stream_reader import StreamReader
from turnout.gateway.stages.trail import Trail
from turnout.gateway.stages.tries import Tries
from turnout.gateway.wire.chat_usage import read_usage

__all__ = ["Serving", "StreamFinish"]


@dataclass(frozen=True, slots=True)
class StreamFinish:
    """What comes after the last visible piece of a stream."""

    chunk: JsonObject
    """Carries every choice's finish reason."""
    usage_body: JsonObject | None
    """The counts as the upstream sent them; None where it sent none."""


class Serving:
    """Speaks to the upstream for the engine and notes on the trail what happens."""

    def __init__(
        self,
        upstream: Upstream,
        catalog: Catalog,
        evidence: LiveEvidence,
        clock: Clock,
        limits: Limits,
    ) -> None:
        self._upstream = upstream
        self._catalog = catalog
        self._evidence = evidence
        self._clock = clock
        self._limits = limits

    async def whole(self, trail: Trail, order: Sequence[DeploymentId]) -> JsonObject:
        """Return the answer of the first deployment that gives one.

        `GatewayError` or the upstream's own `UpstreamError` where none does.
        """
        tries = Tries(trail, order, self._catalog, self._clock, self._limits)
        while True:
            deployment = await tries.next()
            try:
                body = await self._ask(trail, trail.request, deployment)
            except UpstreamError as error:
                self._failed(tries, deployment, error)
                continue
            except asyncio.CancelledError:
                tries.abandoned()
                raise
            trail.usage = read_usage(body.get("usage")) or estimate_usage(trail.request, body)
            timing = tries.answered(calls_of(body))
            observe_answer(self._evidence, trail, timing, first_message(body))
            return body

    async def stream(
        self, trail: Trail, order: Sequence[DeploymentId]
    ) -> AsyncGenerator[JsonObject | StreamFinish, None]:
        """Yield what the client may see as it comes, and the finish last.

        Another deployment is asked only while nothing was yielded; a later failure is raised.
        """
        tries = Tries(trail, order, self._catalog, self._clock, self._limits)
        while True:
            deployment = await tries.next()
            reader = StreamReader(deployment.model)
            try:
                async with aclosing(self._chunks(trail, deployment)) as chunks:
                    async for chunk in chunks:
                        for piece in reader.read(chunk):
                            tries.first_piece()
                            yield piece
                rest = reader.end()
            except UpstreamError as error:
                if reader.began:
                    trail.usage = _used(trail.request, reader)
                    tries.broke_off(error)
                    raise _cut(deployment, error) from error
                self._failed(tries, deployment, error)
                continue
            except (asyncio.CancelledError, GeneratorExit):
                trail.usage = _used(trail.request, reader)
                tries.abandoned()
                raise
            trail.usage = _used(trail.request, reader)
            trail.repairs += reader.repairs
            timing = tries.answered(reader.calls)
            observe_answer(self._evidence, trail, timing, reader.message())
            for piece in rest[:-1]:
                yield piece
            yield StreamFinish(rest[-1], reader.usage_body)
            return

    def _failed(self, tries: Tries, deployment: Deployment, error: UpstreamError) -> None:
        tries.failed(error)
        if error.status is None:
            self._evidence.lose(deployment.id)

    async def _ask(
        self, trail: Trail, request: InferenceRequest, deployment: Deployment
    ) -> JsonObject:
        body = prepare_body(request, deployment)
        provider = self._catalog.providers[deployment.provider]
        reply = await self._upstream.complete(provider, deployment, body)
        repaired = repair_reply(reply.body, request, deployment)
        trail.repairs = repaired.repairs
        return repaired.body

    async def _chunks(
        self, trail: Trail, deployment: Deployment
    ) -> AsyncGenerator[JsonObject, None]:
        request = trail.request
        if needs_whole_reply(request, deployment):
            yield as_chunk(await self._ask(trail, not_streamed(request), deployment))
            return
        body = prepare_body(request, deployment)
        provider = self._catalog.providers[deployment.provider]
        async with aclosing(self._upstream.stream(provider, deployment, body)) as chunks:
            async for chunk in chunks:
                yield chunk


def _used(request: InferenceRequest, reader: StreamReader) -> Usage:
    if reader.usage is not None:
        return reader.usage
    return Usage(request.input_tokens_estimate, reader.output_estimate, estimated=True)


def _cut(deployment: Deployment, error: UpstreamError) -> GatewayError | UpstreamError:
    if error.body is not None:
        return error
    return GatewayError(
        error.sentence(f"{deployment.id} began to answer, then"),
        status=504 if error.timed_out else 502,
        code="stream_cut",
        mend="The answer so far is incomplete; send the request again.",
    )
