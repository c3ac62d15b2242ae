"""Asking one deployment something, in whatever shape its provider speaks."""

from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final

from turnout.core.clock import Clock
from turnout.core.inference import RoutingAsk
from turnout.core.usage import Usage
from turnout.gateway.catalog import Deployment, Provider
from turnout.gateway.dialog.conversation import Conversation
from turnout.gateway.dialog.events import Reply
from turnout.gateway.exchange import DeclaredTool, InferenceRequest
from turnout.gateway.ports import Upstream
from turnout.gateway.wire.base import UpstreamShape

__all__ = ["READ_FROM_TEXT", "Asking", "Heard"]

READ_FROM_TEXT: Final = "calls read from the text"
"""What a repair calls it where a server left its calls in the text."""

_FEW_TOKENS, _MANY_TOKENS = 256, 4_096
"""For an answer; the second where a model thought until the first ran out."""
_CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Heard:
    """An answer, and how it came."""

    reply: Reply
    repairs: tuple[str, ...]
    """What was mended in it, one phrase for each kind."""
    usage: Usage
    first_ms: float | None = None
    """To the first visible piece; None where it was not streamed."""
    answer_ms: float = 0.0


class Asking:
    """One deployment; what is asked of it goes past policies, caps and receipts."""

    def __init__(
        self,
        upstream: Upstream,
        shape: UpstreamShape,
        provider: Provider,
        deployment: Deployment,
        clock: Clock,
    ) -> None:
        self.deployment = deployment
        """Whom it asks."""
        self.provider = provider
        """Who serves it."""
        self._upstream = upstream
        self._shape = shape
        self._clock = clock
        self._limit = _FEW_TOKENS

    @property
    def most_output(self) -> int:
        """Tokens that the next answer may have."""
        return self._limit

    def as_if(self, deployment: Deployment) -> "Asking":
        """Return what asks the same model, with other things known of it."""
        return Asking(self._upstream, self._shape, self.provider, deployment, self._clock)

    async def ask(self, said: Conversation) -> Heard:
        """Return the answer; `UpstreamError` where there is none.

        A model that thinks until its tokens run out gets more of them, from then on at once.
        """
        heard = await self._whole(said)
        if _ran_out(heard.reply) and self._limit < _MANY_TOKENS:
            self._limit = _MANY_TOKENS
            again = await self._whole(said)
            heard = replace(again, usage=heard.usage + again.usage)
        return heard

    async def stream(self, said: Conversation) -> Heard:
        """Return the answer, streamed and timed; `UpstreamError` where there is none.

        It is asked whole, and not timed, where requests of clients would be.
        """
        request = self._request(said, stream=True)
        if self._shape.needs_whole(request, self.deployment):
            return await self.ask(said)
        reader = self._shape.reader(request, self.deployment)
        began = self._clock.monotonic()
        first: float | None = None
        events = self._upstream.stream(self.provider, self._shape.path, request.body, {})
        async with aclosing(events):
            async for event in events:
                pieces = list(reader.read(event))
                if first is None and any(piece.visible for piece in pieces):
                    first = 1000 * (self._clock.monotonic() - began)
        reader.end()
        took = 1000 * (self._clock.monotonic() - began)
        reply = reader.so_far()
        usage = reader.usage or _estimate(request, reply)
        return Heard(reply, reader.repairs, usage, first, took)

    async def _whole(self, said: Conversation) -> Heard:
        request = self._request(said, stream=False)
        path, began = self._shape.path, self._clock.monotonic()
        got = await self._upstream.complete(self.provider, path, request.body, {})
        took = 1000 * (self._clock.monotonic() - began)
        read = self._shape.read(got.body, request, self.deployment)
        usage = read.reply.usage or _estimate(request, read.reply)
        return Heard(read.reply, read.repairs, usage, None, took)

    def _request(self, said: Conversation, *, stream: bool) -> InferenceRequest:
        """Return the request, its body as it is sent."""
        limit = said.sampling.max_tokens or self._limit
        said = replace(said, sampling=replace(said.sampling, max_tokens=limit))
        request = InferenceRequest(
            body={},
            model=self.deployment.model,
            stream=stream,
            include_usage=stream,
            tools=tuple(DeclaredTool(tool.name) for tool in said.tools),
            tool_choice=said.tool_choice,
            max_tokens=limit,
            open_calls=(),
            ask=RoutingAsk(),
            session=None,
            input_tokens_estimate=len(repr(said)) // _CHARS_PER_TOKEN,
            wants_json_schema=said.schema is not None,
            thinking=None,
            call_kind=None,
            shape=self.provider.shape,
        )
        return replace(request, body=self._shape.prepare(request, self.deployment, said))


def _estimate(request: InferenceRequest, reply: Reply) -> Usage:
    size = len(reply.text) + sum(len(call.name) + len(call.arguments) for call in reply.calls)
    return Usage(request.input_tokens_estimate, size // _CHARS_PER_TOKEN, estimated=True)


def _ran_out(reply: Reply) -> bool:
    return reply.finish == "length" and not reply.calls and not reply.text
