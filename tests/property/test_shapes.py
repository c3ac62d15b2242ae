"""A conversation says the same in every shape, whichever shapes it went through."""

from collections.abc import Iterator
from itertools import groupby, permutations
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.core.ids import ToolCallId
from turnout.gateway.dialog.conversation import (
    Call,
    Conversation,
    Result,
    Sampling,
    Text,
    ToolSpec,
    Turn,
)
from turnout.gateway.wire.chat import ChatShape
from turnout.gateway.wire.messages import MessagesShape
from turnout.gateway.wire.responses import ResponsesShape
from turnout.testing.exchange import PLAIN_REQUEST, deployment

SHAPES: Any = (ChatShape(), MessagesShape(), ResponsesShape())
ORDERS = list(permutations(SHAPES))
BY = deployment("p/m")

WORDS = st.text(st.characters(exclude_categories=["Cs", "Zs", "Cc"]), min_size=1, max_size=8)
NAMES = ("read_file", "run-tests", "a_b")
ARGUMENTS = st.dictionaries(WORDS, st.one_of(st.integers(-9, 9), WORDS, st.booleans()), max_size=2)
TOOLS = tuple(ToolSpec(name, name, {"type": "object", "properties": {}}) for name in NAMES)


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    """Return what is asked, answered with words and calls, and what came of the calls."""
    turns = [Turn("system", (Text(draw(WORDS)),))]
    for number in range(draw(st.integers(1, 3))):
        turns.append(Turn("user", (Text(draw(WORDS)),)))
        calls = [
            Call(ToolCallId(f"call_{number}_{at}"), name, orjson.dumps(draw(ARGUMENTS)).decode())
            for at, name in enumerate(draw(st.lists(st.sampled_from(NAMES), max_size=3)))
        ]
        said = [Text(draw(WORDS))] if not calls or draw(st.booleans()) else []
        turns.append(Turn("assistant", (*said, *calls)))
        results = tuple(Result(c.id, (Text(draw(WORDS)),), draw(st.booleans())) for c in calls)
        if results:
            turns.append(Turn("user", results))
    turns.append(Turn("user", (Text(draw(WORDS)),)))
    return Conversation(tuple(turns), TOOLS, sampling=Sampling(max_tokens=64))


def facts(said: Conversation) -> Iterator[object]:
    """Yield who says what, in order; neighbours of one role are one."""
    for role, turns in groupby(said.turns, lambda turn: turn.role):
        for part in (part for turn in turns for part in turn.parts):
            match part:
                case Text():
                    yield role, part.text
                case Call():
                    yield role, part.id, part.name, orjson.loads(part.arguments)
                case Result():
                    words = "".join(p.text for p in part.parts if isinstance(p, Text))
                    yield role, part.call_id, words
                case _:
                    yield role, part


@given(conversations(), st.sampled_from(ORDERS))
@settings(max_examples=150)
def test_what_is_said_survives_every_shape(said: Conversation, order: Any) -> None:
    """Texts, calls, their order, ids and arguments, and which result belongs to which call."""
    heard = said
    for shape in order:
        body = dict(shape.prepare(PLAIN_REQUEST, BY, heard))
        request = shape.parse(orjson.dumps({**body, "model": "auto"}), {})
        assert [tool.name for tool in request.tools] == list(NAMES)
        assert request.max_tokens == 64
        assert list(request.past_calls) == [
            part.id for turn in said.turns for part in turn.parts if isinstance(part, Call)
        ]
        heard = shape.conversation(request)
    assert list(facts(heard)) == list(facts(said))


@given(WORDS, st.sampled_from(ORDERS))
def test_a_free_text_reaches_a_model_of_any_shape(text: str, order: Any) -> None:
    """A custom tool's input is never lost, whatever stands in for it on the way."""
    call = Call(ToolCallId("call_1"), "patch", text, "custom")
    result = Result(call.id, (Text("Done"),), type="custom")
    turns = (Turn("user", (Text("x"),)), Turn("assistant", (call,)), Turn("user", (result,)))
    heard = Conversation(turns, (ToolSpec("patch", "p", type="custom"),))
    for shape in order:
        body = dict(shape.prepare(PLAIN_REQUEST, BY, heard))
        request = shape.parse(orjson.dumps({"max_tokens": 9, **body, "model": "auto"}), {})
        heard = shape.conversation(request)
    (found,) = [p for turn in heard.turns for p in turn.parts if isinstance(p, Call)]
    assert (found.id, found.name) == ("call_1", "patch")
    assert text in (found.arguments, orjson.loads(found.arguments).get("input"))
