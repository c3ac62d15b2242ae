"""Probe and examination ask in whatever shape a provider speaks, by that API's rules."""

import orjson
from tests.knowing import last_said

from turnout.core.clock import SystemClock
from turnout.core.ids import ProviderName
from turnout.gateway.catalog import Provider
from turnout.gateway.dialog.conversation import Shape
from turnout.gateway.measure.asking import Asking
from turnout.gateway.measure.examine import Examiner
from turnout.gateway.measure.examine.exercises import EXERCISES, TIMED, Exercise
from turnout.gateway.measure.probe import PROBE_NAME, probe
from turnout.gateway.providers.http import HttpUpstream
from turnout.gateway.wire.shapes import SPOKEN
from turnout.testing.exchange import deployment
from turnout.testing.messages.server import ReceivedRequest as MessagesRequest
from turnout.testing.messages.server import ScriptedMessagesServer
from turnout.testing.messages.turns import MessagesTurn, text, tool_use
from turnout.testing.responses.server import ReceivedRequest as ResponsesRequest
from turnout.testing.responses.server import ScriptedResponsesServer
from turnout.testing.responses.turns import ResponsesTurn, called, said

COUNT = ", ".join(["one", "two", "three"] * 20)
CLOCK = SystemClock()


def exercise_in(raw: bytes) -> Exercise | None:
    """Return the exercise whose last words a request holds."""
    return next((e for e in EXERCISES if orjson.dumps(last_said(e))[1:-1] in raw), None)


def in_messages(request: MessagesRequest) -> MessagesTurn:
    """Answer everything right, as a model behind the messages API would."""
    exercise = exercise_in(request.raw)
    if exercise is None:
        return MessagesTurn((text(COUNT),))
    calls = [tool_use(n, a, f"toolu_{i}") for i, (n, a) in enumerate(exercise.wanted)]
    return MessagesTurn(tuple(calls) or (text("Bonjour."),))


def in_responses(request: ResponsesRequest) -> ResponsesTurn:
    """Answer everything right, as a model behind the responses API would."""
    exercise = exercise_in(request.raw)
    if exercise is None:
        return ResponsesTurn((said(COUNT),))
    calls = [
        called(n, orjson.dumps(a).decode(), f"call_{i}") for i, (n, a) in enumerate(exercise.wanted)
    ]
    return ResponsesTurn(tuple(calls) or (said("Bonjour."),))


def asking(upstream: HttpUpstream, base_url: str, shape: Shape) -> Asking:
    """Return what asks a model of that shape."""
    provider = Provider(ProviderName("p"), base_url, shape=shape)
    return Asking(upstream, SPOKEN[shape], provider, deployment("p/m"), CLOCK)


async def test_a_model_of_the_messages_shape_is_examined() -> None:
    """Every request keeps to the rules of that API, streamed and whole."""
    async with (
        ScriptedMessagesServer(in_messages) as server,
        HttpUpstream(CLOCK) as upstream,
    ):
        result = await Examiner(CLOCK).examine(asking(upstream, server.base_url, "messages"))
        assert server.faults == []
    assert [check.detail for check in result.checks] == [""] * 6
    assert (result.passed, result.timed) == (len(EXERCISES), len(TIMED))


async def test_a_model_of_the_responses_shape_is_examined() -> None:
    """Every request keeps to the rules of that API, streamed and whole."""
    async with (
        ScriptedResponsesServer(in_responses) as server,
        HttpUpstream(CLOCK) as upstream,
    ):
        result = await Examiner(CLOCK).examine(asking(upstream, server.base_url, "responses"))
        assert server.faults == []
    assert [check.detail for check in result.checks] == [""] * 6
    assert (result.passed, result.timed) == (len(EXERCISES), len(TIMED))


async def test_the_short_probe_speaks_every_shape() -> None:
    """A server of either API that obeys is confirmed."""
    answer = {"text": 'He said "yes"'}
    turns = [MessagesTurn((tool_use(PROBE_NAME, answer, "toolu_1"),))] * 2
    async with (
        ScriptedMessagesServer([*turns, MessagesTurn((text('{"side": "left"}'),))]) as messages,
        HttpUpstream(CLOCK) as upstream,
    ):
        first = await probe(asking(upstream, messages.base_url, "messages"), CLOCK)
        assert messages.faults == []
    call = ResponsesTurn((called(PROBE_NAME, orjson.dumps(answer).decode(), "call_1"),))
    schema = ResponsesTurn((said('{"side": "left"}'),))
    async with (
        ScriptedResponsesServer([call, call, schema]) as responses,
        HttpUpstream(CLOCK) as upstream,
    ):
        second = await probe(asking(upstream, responses.base_url, "responses"), CLOCK)
        assert responses.faults == []
    for result in (first, second):
        assert (result.tools, result.calls_in_text) == ("confirmed", False)
        assert (result.enforces_tool_choice, result.json_schema) == (True, True)
