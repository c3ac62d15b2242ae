"""A client's own messages body on its way to an upstream of the same shape."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from turnout.core.ids import ModelId, ToolCallId
from turnout.core.json import JsonObject, JsonValue, as_objects
from turnout.gateway.dialog.conversation import Conversation, Reasoning, Text, Turn
from turnout.gateway.dialog.thoughts import Thought
from turnout.gateway.exchange import InferenceRequest
from turnout.gateway.wire.messages import MessagesShape
from turnout.testing.exchange import PLAIN_REQUEST, deployment

SHAPE = MessagesShape()
DEPLOYMENT = deployment("p/claude")
MARKING = replace(DEPLOYMENT, caching="marks")
MARK = {"type": "ephemeral"}
ASKED: JsonObject = {"role": "user", "content": "Read a.py"}
CALL: JsonObject = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}}
RESULT: JsonObject = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}
LOOP: list[JsonObject] = [
    ASKED,
    {"role": "assistant", "content": [CALL]},
    {"role": "user", "content": [RESULT]},
]


def _request(**fields: Any) -> InferenceRequest:
    body = {"model": "auto", "max_tokens": 64, "messages": [ASKED], **fields}
    return replace(SHAPE.parse(orjson.dumps(body), {}), caching=True)


def _places(body: JsonObject) -> list[str]:
    """Return where the marks stand."""

    def marked(name: str, blocks: JsonValue) -> list[str]:
        return [f"{name}.{n}" for n, b in enumerate(as_objects(blocks)) if "cache_control" in b]

    found = [*marked("system", body.get("system")), *marked("tools", body.get("tools"))]
    for at, message in enumerate(as_objects(body.get("messages"))):
        found += marked(f"messages.{at}", message.get("content"))
    return found


def test_only_the_models_name_changes() -> None:
    """Byte for byte, unknown fields, key order and numbers included."""
    sent = {
        "max_tokens": 64,
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "model": "auto",
        "temperature": 1.0,
        "messages": LOOP,
        "x_new": [None, 1e3],
    }
    request = SHAPE.parse(orjson.dumps(sent), {})
    prepared = SHAPE.prepare(request, DEPLOYMENT, None)
    assert orjson.dumps(prepared) == orjson.dumps({**sent, "model": "claude"})


@pytest.mark.cases
def test_the_instructions_of_claude_code_stay_byte_for_byte() -> None:
    """Its maker reads the first line, and its marks are its own."""
    system = [
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.0; cch=0a1b2;"},
        {"type": "text", "text": "You are Claude Code.", "cache_control": MARK},
    ]
    prepared = SHAPE.prepare(_request(system=system), MARKING, None)
    assert orjson.dumps(prepared["system"]) == orjson.dumps(system)
    unmarked = [system[0], {"type": "text", "text": "You are Claude Code."}]
    prepared = SHAPE.prepare(_request(system=unmarked), MARKING, None)
    assert orjson.dumps(prepared["system"]) == orjson.dumps(unmarked)


@pytest.mark.cases
def test_the_same_request_gives_the_same_bytes() -> None:
    """A cache that is written and never read costs more than none."""
    raw = orjson.dumps({"model": "auto", "messages": LOOP, "system": "Be brief."})
    said = Conversation((Turn("system", (Text("A"),)), Turn("user", (Text("B"),))))
    for told in (None, said):
        bodies = {
            orjson.dumps(SHAPE.prepare(replace(SHAPE.parse(raw, {}), caching=True), MARKING, told))
            for _ in range(3)
        }
        assert len(bodies) == 1


@pytest.mark.cases
def test_empty_texts_and_messages_are_taken_out() -> None:
    """An upstream refuses the whole conversation for one."""
    messages = [
        ASKED,
        {"role": "assistant", "content": [{"type": "text", "text": ""}, CALL]},
        LOOP[2],
        {"role": "assistant", "content": ""},
        {"role": "user", "content": "Go on."},
    ]
    prepared = SHAPE.prepare(_request(messages=messages), DEPLOYMENT, None)
    assert prepared["messages"] == [*LOOP, messages[-1]]


@pytest.mark.parametrize("signature", ["", None, "turnout.abc"])
def test_thoughts_of_another_maker_are_taken_out(signature: str | None) -> None:
    """They were shown to the client by us; the upstream could not verify them."""
    theirs = {"type": "thinking", "thinking": "hm", "signature": signature}
    own = {"type": "thinking", "thinking": "hm", "signature": "EqQB"}
    hidden = {"type": "redacted_thinking", "data": "xyz"}
    answer = {"role": "assistant", "content": [theirs, own, hidden, CALL]}
    request = _request(messages=[ASKED, answer, LOOP[2]])
    prepared: Any = SHAPE.prepare(request, DEPLOYMENT, None)
    assert prepared["messages"][1]["content"] == [own, hidden, CALL]


def test_thoughts_that_another_model_signed_are_taken_out() -> None:
    """As far as it is on record who made the calls behind them."""
    own = {"type": "thinking", "thinking": "hm", "signature": "EqQB"}
    answer = {"role": "assistant", "content": [own, CALL]}
    thought = Thought(ModelId("other"), (Reasoning("hm", "EqQB"),))
    request = replace(
        _request(messages=[ASKED, answer, LOOP[2]]), thoughts={ToolCallId("toolu_1"): thought}
    )
    prepared: Any = SHAPE.prepare(request, DEPLOYMENT, None)
    assert prepared["messages"][1]["content"] == [CALL]
    same = replace(request, thoughts={ToolCallId("toolu_1"): replace(thought, maker="claude")})
    assert SHAPE.prepare(same, DEPLOYMENT, None)["messages"] == request.body["messages"]


def test_marks_stand_where_the_next_request_will_read() -> None:
    """After instructions, after what the request before ended with, and at the end."""
    tools = [{"name": "Read", "input_schema": {"type": "object"}}]
    request = _request(system="Be brief.", messages=LOOP, tools=tools)
    assert _places(SHAPE.prepare(request, MARKING, None)) == [
        "system.0",
        "messages.0.0",
        "messages.2.0",
    ]


def test_tools_are_marked_where_the_instructions_must_stay() -> None:
    """They come before them in what is cached."""
    tools = [{"name": n, "input_schema": {"type": "object"}} for n in ("Read", "Write")]
    request = _request(system=[{"type": "text", "text": "Be brief."}], tools=tools)
    assert _places(SHAPE.prepare(request, MARKING, None)) == ["tools.1", "messages.0.0"]


def test_a_translated_conversation_is_marked_too() -> None:
    """Its instructions are ours to write."""
    said = Conversation((Turn("system", (Text("A"), Text("B"))), Turn("user", (Text("Hello"),))))
    marked = SHAPE.prepare(replace(PLAIN_REQUEST, caching=True), MARKING, said)
    assert _places(marked) == ["system.1", "messages.0.0"]


@pytest.mark.parametrize(
    "fields",
    [
        {"cache_control": MARK},
        {"system": [{"type": "text", "text": "A", "cache_control": MARK}]},
        {"messages": [*LOOP[:2], {"role": "user", "content": [{**RESULT, "cache_control": MARK}]}]},
    ],
)
def test_a_client_that_marks_is_left_to_it(fields: JsonObject) -> None:
    """Four marks are the most there may be."""
    request = _request(**fields)
    assert SHAPE.prepare(request, MARKING, None) == {**request.body, "model": "claude"}


@pytest.mark.parametrize(
    ("caching", "policy"), [("automatic", True), ("none", True), ("marks", False)]
)
def test_no_marks_where_none_are_wanted(caching: Any, policy: bool) -> None:
    """By the deployment and by the policy."""
    request = replace(_request(system="A"), caching=policy)
    prepared = SHAPE.prepare(request, replace(DEPLOYMENT, caching=caching), None)
    assert prepared == {**request.body, "model": "claude"}


def test_thinking_is_added_only_where_the_client_did_not_speak_of_it() -> None:
    """The gateway's own field is what the catalog is for."""
    thinker = replace(
        DEPLOYMENT,
        thinking_on={"thinking": {"type": "adaptive"}},
        thinking_off={"thinking": {"type": "disabled"}},
    )
    own = _request(thinking={"type": "enabled", "budget_tokens": 1024})
    assert SHAPE.prepare(own, thinker, None)["thinking"] == own.body["thinking"]
    for wanted, kind in ((True, "adaptive"), (False, "disabled")):
        asked = _request(extended_thinking=wanted)
        assert SHAPE.prepare(asked, thinker, None)["thinking"] == {"type": kind}


def test_a_count_is_asked_with_what_is_counted_alone() -> None:
    """The route refuses the rest."""
    request = _request(stream=True, metadata={"user_id": "u"}, system="A")
    assert set(SHAPE.count_body(request, DEPLOYMENT)) == {"model", "messages", "system"}
