"""Deployments are asked in turn until one answers, in whichever shape each speaks."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import orjson
import pytest

from turnout.core.clock import SystemClock
from turnout.core.ids import DeploymentId, ModelId, ProviderName, RequestId, ToolCallId
from turnout.errors import GatewayError
from turnout.gateway.catalog import Catalog, Deployment, Provider
from turnout.gateway.dialog.conversation import (
    Call,
    Conversation,
    Reasoning,
    Result,
    Shape,
    Text,
)
from turnout.gateway.dialog.conversation import (
    Turn as Said,
)
from turnout.gateway.dialog.events import Ending, Piece, TextDelta
from turnout.gateway.dialog.thoughts import Thought
from turnout.gateway.exchange import Caller, DeclaredTool, InferenceRequest, UpstreamError
from turnout.gateway.measure.live import LiveEvidence
from turnout.gateway.providers.http import HttpUpstream
from turnout.gateway.stages.attempts.fallback import Limits
from turnout.gateway.stages.serving import Serving
from turnout.gateway.stages.trail import Trail
from turnout.gateway.wire.base import ClientShape
from turnout.gateway.wire.chat import ChatShape
from turnout.gateway.wire.fields import invalid
from turnout.testing.exchange import PLAIN_REQUEST, deployment
from turnout.testing.model_server import Call as Made
from turnout.testing.model_server import Refusal, ScriptedModelServer, Turn

M, N = deployment("p/m"), deployment("p/n")
LONG = "one two three four five six seven eight"
STREAMED = replace(PLAIN_REQUEST, stream=True, body={**PLAIN_REQUEST.body, "stream": True})
FOREIGN = replace(PLAIN_REQUEST, shape="responses", body={"input": "Hello"})


class OtherShape(ChatShape):
    """A client's shape whose requests say what a test wants said."""

    def __init__(self, said: Conversation | None) -> None:
        self.asked = 0
        self._said = said

    @property
    def shape(self) -> Shape:
        """Its name."""
        return "responses"

    def conversation(self, request: InferenceRequest) -> Conversation:
        """Return what the test wants said, or refuse."""
        self.asked += 1
        if self._said is None:
            raise invalid("That cannot be said elsewhere.", "input")
        return self._said


HELLO = Conversation((Said("user", (Text("Hello"),)),))


@dataclass(frozen=True)
class Bench:
    """A serving stage before scripted models."""

    serving: Serving
    server: ScriptedModelServer
    evidence: LiveEvidence

    async def whole(self, trail: Trail, order: Sequence[Deployment]) -> str:
        """Return the text of a whole answer."""
        return (await self.serving.whole(trail, [d.id for d in order])).reply.text

    async def stream(self, trail: Trail, order: Sequence[Deployment]) -> list[Piece | Ending]:
        """Return all that a stream yields."""
        pieces = self.serving.stream(trail, [d.id for d in order])
        return [piece async for piece in pieces]


@asynccontextmanager
async def bench(
    script: Mapping[str, Sequence[Turn | Refusal]],
    *deployments: Deployment,
    heard: ClientShape | None = None,
    api_key: str = "",
) -> AsyncIterator[Bench]:
    """Yield a serving stage."""
    clock, chat = SystemClock(), ChatShape()
    shapes: dict[Shape, ClientShape] = {"chat": chat}
    if heard is not None:
        shapes["responses"] = heard
    async with ScriptedModelServer(dict(script)) as server, HttpUpstream(clock) as upstream:
        names = {d.provider for d in deployments or (M, N)}
        providers = {
            name: Provider(name, server.base_url, api_key, idle_timeout=0.5) for name in names
        }
        catalog = Catalog(providers, deployments or (M, N))
        evidence = LiveEvidence(clock)
        limits = Limits(backoff=0.01, tries_each=1)
        spoken = {"chat": chat}
        yield Bench(
            Serving(upstream, spoken, shapes, catalog, evidence, clock, limits), server, evidence
        )


def trail_of(request: InferenceRequest = PLAIN_REQUEST) -> Trail:
    """Return the trail of a request that was just decided on."""
    clock = SystemClock()
    began = clock.monotonic()
    return Trail(RequestId("req-1"), Caller("k"), request, clock.now(), began, request.model)


def text_of(pieces: Sequence[Piece | Ending]) -> str:
    """Return the text of a stream."""
    events = [event for p in pieces if isinstance(p, Piece) for event in p.events]
    return "".join(event.text for event in events if isinstance(event, TextDelta))


async def test_a_whole_answer_is_on_the_trail() -> None:
    """What was used, what was called, who answered."""
    async with bench({"m": [Turn(LONG, calls=(Made("look"),))]}) as on:
        trail = trail_of()
        assert await on.whole(trail, [M, N]) == LONG
    assert trail.serving == M
    assert (trail.usage.output_tokens, trail.usage.estimated) == (20, False)
    assert trail.tools_called == ("look",)
    assert trail.reply is not None
    assert [call.id for call in trail.reply.calls] == list(trail.calls)


async def test_a_stream_ends_with_its_ending_and_the_whole_answer_is_known() -> None:
    """Held pieces come first, the ending last."""
    async with bench({"m": [Turn(LONG, reasoning="hm")]}) as on:
        trail = trail_of(STREAMED)
        pieces = await on.stream(trail, [M])
    assert text_of(pieces) == LONG
    assert [isinstance(piece, Ending) for piece in pieces][-2:] == [False, True]
    assert trail.reply is not None
    assert trail.reply.parts == (Reasoning("hm"), Text(LONG))
    assert trail.ttft_ms is not None


@pytest.mark.parametrize("request_", [PLAIN_REQUEST, STREAMED], ids=["whole", "stream"])
async def test_the_next_is_asked_where_the_first_fails_unseen(request_: InferenceRequest) -> None:
    """A stream that breaks before anything visible came counts as unseen."""
    first = Turn("", fault="cut") if request_.stream else Refusal(500)
    async with bench({"m": [first], "n": [Turn(LONG)]}) as on:
        trail = trail_of(request_)
        asked = on.stream(trail, [M, N]) if request_.stream else on.whole(trail, [M, N])
        answer = await asked
    assert (text_of(answer) if isinstance(answer, list) else answer) == LONG
    assert (trail.serving, trail.fallback, len(trail.attempts)) == (N, True, 2)


async def test_nobody_else_is_asked_once_something_was_seen() -> None:
    """The client hears that the stream broke; what came is an estimate."""
    async with bench({"m": [Turn(LONG, fault="cut")], "n": [Turn(LONG)]}) as on:
        trail = trail_of(STREAMED)
        with pytest.raises(GatewayError) as caught:
            await on.stream(trail, [M, N])
    assert (caught.value.status, caught.value.code) == (502, "stream_cut")
    assert (trail.usage.estimated, trail.serving) == (True, M)
    assert trail.usage.output_tokens > 0
    assert [request.model for request in on.server.requests] == ["m"]


async def test_a_stream_that_stays_open_after_its_end_is_left() -> None:
    """A connection that nobody closes holds no answer up for ever."""
    async with bench({"m": [Turn(LONG, fault="no_end")]}) as on:
        trail = trail_of(STREAMED)
        pieces = await asyncio.wait_for(on.stream(trail, [M]), 8.0)
    assert text_of(pieces) == LONG
    assert trail.usage.estimated is False


async def test_what_is_closed_early_is_charged_by_what_came() -> None:
    """The text was read and nobody waits for the counts."""
    async with bench({"m": [Turn(LONG * 9, pause=0.02)]}) as on:
        trail = trail_of(STREAMED)
        async with aclosing(on.serving.stream(trail, [M.id])) as pieces:
            await anext(pieces)
            await anext(pieces)
        await asyncio.wait_for(on.server.requests[0].closed.wait(), 1.0)
    assert trail.usage.estimated
    assert trail.usage.input_tokens == STREAMED.input_tokens_estimate
    assert trail.usage.output_tokens > 0
    assert trail.attempts[-1].error == "the client went away"


async def test_a_request_is_translated_once_for_all_deployments() -> None:
    """And only where a deployment needs it."""
    heard = OtherShape(HELLO)
    async with bench({"m": [Refusal(500)], "n": [Turn("Hi.")]}, heard=heard) as on:
        trail = trail_of(FOREIGN)
        answer = await on.serving.whole(trail, [M.id, N.id])
    assert (answer.reply.text, heard.asked) == ("Hi.", 1)
    assert on.server.requests[0].messages == [{"role": "user", "content": "Hello"}]
    assert on.server.requests[0].body["model"] == "m"


async def test_a_request_that_cannot_be_translated_is_refused_with_its_reason() -> None:
    """Nobody was asked, and nobody's health suffers."""
    async with bench({}, heard=OtherShape(None)) as on:
        trail = trail_of(FOREIGN)
        with pytest.raises(GatewayError, match="cannot be said elsewhere") as caught:
            await on.whole(trail, [M, N])
        assert not on.evidence.circuits.ailing()
    assert (caught.value.status, trail.attempts, trail.serving) == (400, [], None)
    assert on.server.requests == []


async def test_the_headers_of_the_client_go_to_its_own_shape_alone() -> None:
    """Another API would not know them."""
    heard = OtherShape(HELLO)
    passed = {"openai-beta": "x"}
    async with bench({"m": [Turn("a"), Turn("b")]}, heard=heard) as on:
        await on.whole(trail_of(replace(PLAIN_REQUEST, headers=passed)), [M])
        await on.whole(trail_of(replace(FOREIGN, headers=passed)), [M])
    own, other = on.server.requests
    assert (own.headers.get("openai-beta"), other.headers.get("openai-beta")) == ("x", None)


async def test_a_deployment_is_asked_the_same_under_one_key_however_often() -> None:
    """It can know what it has answered; another caller, or other words, have another key."""
    key = replace(PLAIN_REQUEST, idempotency_key="step-1")
    other = replace(key, body={**key.body, "max_tokens": 7})
    foreign = replace(FOREIGN, idempotency_key="step-1")
    async with bench({"m": [Turn("a")] * 6}, heard=OtherShape(HELLO)) as on:
        for request in (PLAIN_REQUEST, foreign, key, key, other):
            await on.whole(trail_of(request), [M])
        trail = trail_of(key)
        trail.caller = Caller("else")
        await on.whole(trail, [M])
    sent = [request.headers.get("idempotency-key") for request in on.server.requests]
    assert (sent[0], sent[1] is None, sent[2]) == (None, False, sent[3])
    assert len({*sent[3:]}) == 3
    assert all("step-1" not in str(each) for each in sent)


async def test_a_policys_own_key_takes_the_place_of_the_catalogs() -> None:
    """For that provider alone."""
    q = replace(deployment("q/m"), provider=ProviderName("q"))
    async with bench({"m": [Turn("a"), Turn("b")]}, M, q, api_key="shared") as on:
        for one in (M, q):
            trail = trail_of()
            trail.provider_keys = {ProviderName("q"): "own"}
            await on.whole(trail, [one])
    assert [r.headers["authorization"] for r in on.server.requests] == [
        "Bearer shared",
        "Bearer own",
    ]


@pytest.mark.cases
async def test_thoughts_are_told_to_their_maker_alone() -> None:
    """In a translated conversation as in one of the same shape."""
    call = ToolCallId("c")
    said = Conversation(
        (
            Said("user", (Text("Hi"),)),
            Said("assistant", (Call(call, "look", "{}"),)),
            Said("user", (Result(call, (Text("1"),)),)),
        )
    )
    thinks = [replace(d, reasoning_back=True) for d in (M, N)]
    thoughts = {call: Thought(ModelId("m"), (Reasoning("hm"),))}
    asked = replace(FOREIGN, thoughts=thoughts, past_calls=(call,))
    script = {"m": [Refusal(500)], "n": [Refusal(500)]}
    async with bench(script, *thinks, heard=OtherShape(said)) as on:
        with pytest.raises(UpstreamError):
            await on.whole(trail_of(asked), thinks)
    told = [r.messages[1]["reasoning_content"] for r in on.server.requests]
    assert told == ["hm", ""]


async def test_an_answer_repaired_whole_is_streamed_all_the_same() -> None:
    """Calls in the text are calls, and the receipt says so."""
    textual = replace(M, calls_in_text=True)
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    asked = replace(
        STREAMED, body={**STREAMED.body, "tools": [tool]}, tools=(DeclaredTool("look"),)
    )
    turn = Turn("I look.", calls=(Made("look", {"p": 1}),), fault="call_in_text")
    async with bench({"m": [turn]}, textual) as on:
        trail = trail_of(asked)
        pieces = await on.stream(trail, [textual])
    assert text_of(pieces) == "I look."
    assert trail.reply is not None
    assert [c.arguments for c in trail.reply.calls] == ['{"p": 1}']
    assert "calls read from the text" in trail.repairs
    ending = pieces[-1]
    assert isinstance(ending, Ending)
    assert ending.finish == "tool_calls"


async def test_whoever_is_not_in_the_catalog_is_our_own_mistake() -> None:
    """A decision names deployments of the catalog."""
    async with bench({}) as on:
        with pytest.raises(GatewayError) as caught:
            await on.serving.whole(trail_of(), [DeploymentId("p/gone")])
    assert caught.value.status == 500


def _choice(number: int, text: str = "", finish: str | None = None) -> bytes:
    delta = {"content": text} if text else {}
    choice = {"index": number, "delta": delta, "finish_reason": finish}
    return b"data: " + orjson.dumps({"choices": [choice]}) + b"\n\n"


async def test_a_choice_that_takes_longer_is_waited_for() -> None:
    """The first of two has ended; the other is not given up for that."""
    between = asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        writer.write(_choice(0, "a") + _choice(1, "b") + _choice(0, "", "stop"))
        await between.wait()
        writer.write(_choice(1, "c", "stop"))
        writer.close()

    async with (
        await asyncio.start_server(slow, "127.0.0.1", 0) as server,
        HttpUpstream(SystemClock()) as upstream,
    ):
        port = server.sockets[0].getsockname()[1]
        provider = Provider(ProviderName("p"), f"http://127.0.0.1:{port}/v1")
        catalog = Catalog({provider.name: provider}, (M,))
        clock, chat = SystemClock(), ChatShape()
        spoken: Any = {"chat": chat}
        serving = Serving(upstream, spoken, spoken, catalog, LiveEvidence(clock), clock, Limits())
        asyncio.get_running_loop().call_later(2.5, between.set)
        pieces = [piece async for piece in serving.stream(trail_of(STREAMED), [M.id])]
    *said, ending = pieces
    assert isinstance(ending, Ending)
    choices: Any = ending.natives[0].value["choices"]
    assert [choice["finish_reason"] for choice in choices] == ["stop", "stop"]
    natives: list[Any] = [p.native.value for p in said if isinstance(p, Piece) and p.native]
    assert [n["choices"][0]["delta"]["content"] for n in natives] == ["a", "b", "c"]


@pytest.mark.parametrize("after", [b"data: {oops\n\n", b'data: {"error":{"message":"late"}}\n\n'])
async def test_what_breaks_after_the_end_breaks_nothing(after: bytes) -> None:
    """The answer was whole by then."""
    raw = _choice(0, "Hi") + _choice(0, "", "stop") + after
    refusal = Refusal(200, raw=raw, headers={"Content-Type": "text/event-stream"})
    async with bench({"m": [refusal]}) as on:
        pieces = await on.stream(trail_of(STREAMED), [M])
    assert text_of(pieces) == "Hi"
    assert isinstance(pieces[-1], Ending)
