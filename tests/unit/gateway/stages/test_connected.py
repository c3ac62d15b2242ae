"""Going on with a model, on a serving that is scripted."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from turnout.core.clock import SystemClock
from turnout.core.govern.connections import ToolOutcome
from turnout.core.ids import DeploymentId, RequestId, ToolCallId
from turnout.core.money import Micros, Price
from turnout.core.policies import Policy
from turnout.core.usage import Usage
from turnout.errors import GatewayError
from turnout.gateway.catalog import Catalog, Deployment
from turnout.gateway.dialog.conversation import Call, Reasoning, Text
from turnout.gateway.dialog.events import Ending, Native, Piece, Reply
from turnout.gateway.dialog.fold import events_of, fold_events
from turnout.gateway.exchange import Caller, ConnectionAsk, DeclaredTool, InferenceRequest
from turnout.gateway.stages.answers import Answer
from turnout.gateway.stages.connected import ConnectedServing
from turnout.gateway.stages.trail import Trail
from turnout.testing.connections import FakeConnections, MemoryTurns
from turnout.testing.exchange import PLAIN_REQUEST, deployment

PRICE = Price(input=1_000_000, output=1_000_000)
ONE, OTHER, SAME = (
    replace(deployment("p/m"), price=PRICE),
    replace(deployment("p/other"), price=PRICE),
    replace(deployment("q/m"), price=PRICE),
)
CATALOG = Catalog({}, (ONE, OTHER, SAME))
ORDER = (ONE.id, OTHER.id, SAME.id)
OURS = Call(ToolCallId("o"), "mcp__c__read", "{}")
THEIRS = Call(ToolCallId("t"), "own", "{}")
NATIVE = Native("chat", {"choices": []})
TOOLS: Any = [{"type": "mcp", "mcp": {"server": "c"}}]


@dataclass
class Scripted:
    """A serving that notes what it is asked and answers from a script."""

    script: Sequence[Reply]
    serves: Deployment = ONE
    requests: list[InferenceRequest] = field(default_factory=list)
    orders: list[tuple[DeploymentId, ...]] = field(default_factory=list)

    def _next(self, trail: Trail, order: Sequence[DeploymentId]) -> Reply:
        reply = self.script[len(self.requests)]
        self.requests.append(trail.request)
        self.orders.append(tuple(order))
        trail.serving, trail.reply, trail.usage = self.serves, reply, Usage(100, 10)
        trail.ttft_ms = 5 * len(self.requests)
        trail.repairs = (f"mend {len(self.requests)}",)
        trail.calls = tuple(call.id for call in reply.calls)
        trail.tools_called = tuple(call.name for call in reply.calls)
        return reply

    async def whole(self, trail: Trail, order: Sequence[DeploymentId]) -> Answer:
        """Return the next answer."""
        return Answer(self._next(trail, order), NATIVE)

    async def stream(
        self, trail: Trail, order: Sequence[DeploymentId]
    ) -> AsyncGenerator[Piece | Ending, None]:
        """Yield the next answer."""
        reply = self._next(trail, order)
        for event in events_of(reply.parts):
            yield Piece((event,), NATIVE)
        yield Ending(reply.finish, natives=(NATIVE,))


def trail(**changed: Any) -> Trail:
    """Return that of a request which names a connection."""
    request = replace(
        PLAIN_REQUEST,
        body={**PLAIN_REQUEST.body, "tools": TOOLS},
        connections=(ConnectionAsk("c"),),
        tools=(DeclaredTool("mcp:c/*"),),
        **changed,
    )
    at = SystemClock().now()
    return Trail(RequestId("req-1"), Caller("k"), request, at, 0.0, "auto", policy=Policy())


def connected(serving: Scripted, **more: Any) -> ConnectedServing:
    """Return what is tested, with one tool."""
    connections = FakeConnections({"c": {"read": lambda _: ToolOutcome("text")}})
    return ConnectedServing(serving, connections, MemoryTurns(), CATALOG, SystemClock(), **more)


def said(*parts: Any) -> Reply:
    """Return an answer."""
    calls = any(isinstance(part, Call) for part in parts)
    return Reply(parts, "tool_calls" if calls else "stop")


async def streamed(serving: ConnectedServing, noted: Trail) -> list[Piece | Ending]:
    """Return what a client of a stream is handed."""
    async with aclosing(serving.stream(noted, ORDER)) as pieces:
        return [piece async for piece in pieces]


async def test_a_request_without_connections_is_handed_on_untouched() -> None:
    """With its natives, and the same objects."""
    serving = Scripted([said(Text("hi"))])
    noted = trail()
    plain = noted.request = replace(noted.request, connections=())
    assert (await connected(serving).whole(noted, ORDER)).native is NATIVE
    assert serving.requests[0] is plain


async def test_an_answer_without_our_calls_keeps_what_is_native_to_it() -> None:
    """Fields that only that shape knows reach the client."""
    noted = trail()
    answer = await connected(Scripted([said(Text("hi"), THEIRS)])).whole(noted, ORDER)
    assert answer.native is NATIVE
    assert noted.calls == (THEIRS.id,)


async def test_a_conversation_stays_on_its_model_between_rounds() -> None:
    """First on the deployment that answered, then on another of the same model."""
    serving = Scripted([said(OURS), said(Text("hi"))], serves=SAME)
    await connected(serving).whole(trail(), ORDER)
    assert serving.orders == [ORDER, (SAME.id, ONE.id)]


async def test_what_all_rounds_were_is_on_the_trail_at_the_end() -> None:
    """The client's request, the first token, every mend, every tool by its full name."""
    noted = trail()
    asked = noted.request
    await connected(Scripted([said(OURS), said(Text("hi"))])).whole(noted, ORDER)
    assert noted.request is asked
    assert noted.ttft_ms == 5
    assert noted.repairs == ("mend 1", "mend 2")
    assert noted.tools_called == ("mcp:c/read",)
    assert noted.total_usage == Usage(200, 20)
    assert noted.cost == 220
    assert noted.calls == ()


async def test_the_stream_and_the_whole_of_an_answer_are_the_same() -> None:
    """Part for part, and no native piece of one round in the middle of another."""
    script = [said(Reasoning("hm"), Text("Look."), OURS), said(Text("Both."), OURS, THEIRS)]
    whole = await connected(Scripted(script)).whole(noted := trail(), ORDER)
    pieces = await streamed(connected(Scripted(script)), again := trail())
    *shown, ending = pieces
    events = [event for piece in shown if isinstance(piece, Piece) for event in piece.events]
    assert fold_events(events) == whole.reply.parts
    assert all(isinstance(piece, Piece) and piece.native is None for piece in shown)
    assert isinstance(ending, Ending)
    assert (ending.finish, ending.natives) == ("tool_calls", ())
    assert noted.reply == again.reply == whole.reply
    assert whole.reply.calls == (THEIRS,)
    assert whole.native is None


async def test_an_answer_that_was_cut_runs_no_call() -> None:
    """Its arguments may be half of what was meant; the client reads that it was cut."""
    cut = Reply((Text("Look."), OURS), "length")
    noted = trail()
    answer = await connected(Scripted([cut])).whole(noted, ORDER)
    assert (answer.reply.parts, answer.reply.finish) == ((Text("Look."),), "length")
    assert noted.connection_calls == []


async def test_a_request_that_has_used_up_its_budget_is_asked_to_answer() -> None:
    """What is left of the caps, with its own reservation, is what it may cost."""
    serving = Scripted([said(OURS), said(Text("hi"))])
    noted = trail()
    noted.worst = Micros(60)
    await connected(serving, left=lambda _: Micros(50)).whole(noted, ORDER)
    assert serving.requests[1].tool_choice == "none"
    rich = Scripted([said(OURS), said(Text("hi"))])
    await connected(rich, left=lambda _: Micros(1_000)).whole(trail(), ORDER)
    assert rich.requests[1].tool_choice == "auto"


async def test_more_than_one_answer_cannot_be_asked_for() -> None:
    """There would be more than one way to go on."""
    noted = trail()
    noted.request = replace(noted.request, body={**noted.request.body, "n": 2})
    with pytest.raises(GatewayError) as failure:
        await connected(Scripted([])).whole(noted, ORDER)
    assert (failure.value.status, failure.value.param) == (400, "n")


async def test_the_functions_are_what_the_next_stages_see() -> None:
    """Repairs and deployments judge by the tools of the request."""
    serving = Scripted([said(Text("hi"))])
    await connected(serving).whole(trail(), ORDER)
    asked = serving.requests[0]
    assert [tool.name for tool in asked.tools] == ["mcp__c__read"]
    assert asked.connections == ()
    tools: Any = asked.body["tools"]
    assert [tool["function"]["name"] for tool in tools] == ["mcp__c__read"]


async def test_thoughts_before_our_calls_are_there_in_the_next_round() -> None:
    """For models that want them back."""
    serving = Scripted([said(Reasoning("hm"), OURS), said(Text("hi"))])
    await connected(serving).whole(trail(), ORDER)
    assert serving.requests[1].thoughts[OURS.id].text == "hm"
