"""An answer's calls are calls, each mend is named, and nothing right is touched."""

from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.core.ids import ToolCallId
from turnout.core.json import JsonObject, JsonValue, as_object, as_objects
from turnout.gateway.dialog.conversation import Call, Text
from turnout.gateway.dialog.events import Reply
from turnout.gateway.exchange import DeclaredTool
from turnout.gateway.repair import (
    CallCount,
    count_calls,
    needs_whole_reply,
    repair_reply,
)
from turnout.testing.exchange import PLAIN_REQUEST, deployment

REQUEST = replace(
    PLAIN_REQUEST,
    body={**PLAIN_REQUEST.body, "tools": [{"type": "function", "function": {"name": "look"}}]},
    tools=(DeclaredTool("look"),),
)
PLAIN = deployment("acme/m")
TEXTUAL = replace(PLAIN, calls_in_text=True)
FENCED = 'So:\n```json\n{"name": "look", "arguments": {"path": "a"}}\n```'


def call(**change: JsonValue) -> JsonObject:
    """Return a native call that is right but for `change`."""
    function = {"name": "look", "arguments": "{}"}
    return {"id": "c1", "type": "function", "function": function, **change}


def body(finish: str | None, *calls: JsonObject, text: str | None = None) -> JsonObject:
    """Return a whole answer."""
    message: dict[str, JsonValue] = {"role": "assistant", "content": text, "reasoning": "kept"}
    if calls:
        message["tool_calls"] = list(calls)
    return {"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def only(answer: JsonObject) -> JsonObject:
    """Return the one choice of an answer."""
    (choice,) = as_objects(answer["choices"])
    return choice


def calls_of(answer: JsonObject) -> list[JsonObject]:
    """Return the calls of the one choice."""
    return as_objects(as_object(only(answer)["message"]).get("tool_calls"))


@pytest.mark.parametrize(
    "right",
    [
        body("stop", text="Hello"),
        body("length", text="Hel"),
        body("tool_calls", call(), call(id="c2")),
        body("tool_calls", {"id": "c", "type": "custom", "custom": {"name": "p", "input": "x"}}),
    ],
)
def test_a_right_answer_is_handed_on_itself(right: JsonObject) -> None:
    """Nothing is rebuilt where nothing is wrong."""
    repaired = repair_reply(right, REQUEST, PLAIN)
    assert repaired.body is right
    assert repaired.repairs == ()


def test_a_call_in_the_text_becomes_a_call() -> None:
    """The prose stays, the finish reason agrees, unknown fields are kept."""
    repaired = repair_reply(body("stop", text=FENCED), REQUEST, TEXTUAL)
    (made,) = calls_of(repaired.body)
    assert made["function"] == {"name": "look", "arguments": '{"path": "a"}'}
    assert str(made["id"]).startswith("call_")
    choice = only(repaired.body)
    assert choice["finish_reason"] == "tool_calls"
    assert as_object(choice["message"])["content"] == "So:"
    assert as_object(choice["message"])["reasoning"] == "kept"
    assert repaired.repairs == ("calls read from the text", "finish reason made tool_calls")


def test_an_emulated_choice_is_read_from_its_schema() -> None:
    """The reply to our own schema is a call, and no text is left."""
    asked = replace(REQUEST, tool_choice="required")
    loose = replace(PLAIN, enforces_tool_choice=False)
    text = '{"name": "look", "arguments": {"path": "a"}}'
    repaired = repair_reply(body("stop", text=text), asked, loose)
    assert len(calls_of(repaired.body)) == 1
    assert as_object(only(repaired.body)["message"])["content"] is None


def test_text_is_text_where_no_tool_may_be_called() -> None:
    """Without tools, or with the choice `none`, nothing is a call."""
    for asked in (PLAIN_REQUEST, replace(REQUEST, tool_choice="none")):
        assert repair_reply(body("stop", text=FENCED), asked, TEXTUAL).repairs == ()


@pytest.mark.cases
@pytest.mark.parametrize(
    "said",
    [
        FENCED,
        '{"name": "look", "arguments": {"path": "a"}}',
        '<tool_call>{"name": "look", "arguments": {"path": "a"}}</tool_call>',
        "<function=look><parameter=path>a</parameter></function>",
        '[TOOL_CALLS]look[ARGS]{"path": "a"}',
    ],
)
def test_a_call_in_the_text_is_text_where_the_catalog_does_not_say_so(said: str) -> None:
    """A model that calls natively may show one, even as all that it says."""
    assert repair_reply(body("stop", text=said), REQUEST, PLAIN).repairs == ()
    assert len(calls_of(repair_reply(body("stop", text=said), REQUEST, TEXTUAL).body)) == 1


@pytest.mark.cases
def test_a_tool_stop_without_a_call_becomes_a_stop() -> None:
    """A client never waits for a call that is not there."""
    wrong = body("tool_calls", text="Hello")
    as_object(only(wrong)["message"])["tool_calls"] = []
    repaired = repair_reply(wrong, REQUEST, PLAIN)
    assert only(repaired.body)["finish_reason"] == "stop"
    assert "tool_calls" not in as_object(only(repaired.body)["message"])
    assert repaired.repairs == ("finish reason made stop",)


@pytest.mark.parametrize("finish", ["stop", None, "eos"])
def test_calls_with_another_finish_reason_are_a_tool_stop(finish: str | None) -> None:
    """The finish reason agrees with the calls."""
    assert only(repair_reply(body(finish, call()), REQUEST, PLAIN).body)["finish_reason"] == (
        "tool_calls"
    )


def test_an_answer_that_was_cut_stays_cut() -> None:
    """The limit is told even where calls came before it."""
    assert repair_reply(body("length", call()), REQUEST, PLAIN).repairs == ()


@pytest.mark.parametrize(
    ("wrong", "repair"),
    [
        (call(id=""), "call id added"),
        (call(id=None), "call id added"),
        (call(function={"name": "look", "arguments": {"a": 1}}), "arguments object written"),
        (call(function={"name": "look", "arguments": ""}), "empty arguments replaced"),
        (call(function={"name": "look"}), "empty arguments replaced"),
        (call(function={"arguments": "{}"}), "call without a name left out"),
    ],
)
def test_each_mend_is_named(wrong: JsonObject, repair: str) -> None:
    """The receipt tells what was done."""
    repaired = repair_reply(body("tool_calls", wrong), REQUEST, PLAIN)
    assert any(said.startswith(repair) for said in repaired.repairs)


def test_two_calls_of_one_id_get_two() -> None:
    """The first keeps its id."""
    repaired = repair_reply(body("tool_calls", call(), call()), REQUEST, PLAIN)
    first, second = calls_of(repaired.body)
    assert first["id"] == "c1"
    assert second["id"] != "c1"
    assert repaired.repairs == ("duplicate call id replaced",)


def test_broken_arguments_stay_as_the_model_wrote_them() -> None:
    """Nobody guesses what was meant; the count knows."""
    wrong = body("tool_calls", call(function={"name": "look", "arguments": '{"a": '}))
    assert repair_reply(wrong, REQUEST, PLAIN).body is wrong
    reply = Reply((Call(ToolCallId("c1"), "look", '{"a": '),), "tool_calls")
    assert count_calls(reply, REQUEST) == CallCount(1, 1)


@pytest.mark.cases
def test_a_call_left_in_the_text_counts_against_the_model() -> None:
    """It is never silently a success."""
    stray = Reply((Text("I will <tool_call>{oops</tool_call>"),), "stop")
    assert count_calls(stray, REQUEST) == CallCount(1, 1)
    assert count_calls(stray, PLAIN_REQUEST) == CallCount(0, 0)
    assert count_calls(Reply((Text("Hi"),), "stop"), REQUEST) == CallCount(0, 0)


def test_an_old_function_call_is_left_alone_where_it_was_asked_for() -> None:
    """The deprecated form has no ids and no list to mend."""
    old = body("function_call")
    as_object(only(old)["message"])["function_call"] = {"name": "look", "arguments": "{}"}
    asked = replace(REQUEST, body={**PLAIN_REQUEST.body, "functions": [{"name": "look"}]})
    assert repair_reply(old, asked, PLAIN).body is old


def test_an_old_function_call_becomes_a_call_where_tools_were_declared() -> None:
    """A client of today never looks at the old field."""
    old = body("function_call")
    as_object(only(old)["message"])["function_call"] = {"name": "look", "arguments": "{}"}
    repaired = repair_reply(old, REQUEST, PLAIN)
    (made,) = calls_of(repaired.body)
    assert made["function"] == {"name": "look", "arguments": "{}"}
    assert only(repaired.body)["finish_reason"] == "tool_calls"
    assert "call in the old form rewritten" in repaired.repairs


def test_a_stream_waits_only_where_calls_come_as_text() -> None:
    """Text that was sent cannot be taken back; everything else flows."""
    loose = replace(PLAIN, enforces_tool_choice=False)
    required = replace(REQUEST, tool_choice="required")
    assert needs_whole_reply(REQUEST, TEXTUAL)
    assert needs_whole_reply(required, loose)
    assert not needs_whole_reply(REQUEST, loose)
    assert not needs_whole_reply(PLAIN_REQUEST, TEXTUAL)
    assert not needs_whole_reply(replace(REQUEST, tool_choice="none"), TEXTUAL)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**31), 2**31) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)
CALLS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "id": st.sampled_from(["", "a", "b", None, 3]),
            "type": st.sampled_from(["function", None, "custom"]),
            "function": st.fixed_dictionaries(
                {}, optional={"name": st.sampled_from(["look", "", None]), "arguments": JSON}
            )
            | JSON,
        },
    ),
    max_size=4,
)


@given(
    calls=CALLS | JSON,
    finish=st.sampled_from(["stop", "tool_calls", "length", None, "eos"]),
    text=st.none() | st.text() | st.sampled_from([FENCED, "<tool_call>{}"]) | JSON,
    textual=st.booleans(),
)
def test_whatever_came_the_result_keeps_the_rules(
    calls: object, finish: str | None, text: object, textual: bool
) -> None:
    """Ids are there and differ, names are there, arguments are text, finish reasons agree."""
    message = {"content": text, "tool_calls": calls}
    wrong = {"choices": [{"message": message, "finish_reason": finish}]}
    repaired = repair_reply(wrong, REQUEST, TEXTUAL if textual else PLAIN)
    made = calls_of(repaired.body)
    ids = [str(c["id"]) for c in made]
    assert all(ids)
    assert len(set(ids)) == len(ids)
    functions = [as_object(c["function"]) for c in made if c["type"] == "function"]
    assert all(f["name"] and isinstance(f["arguments"], str) for f in functions)
    ended = only(repaired.body)["finish_reason"]
    assert ended != "tool_calls" or made
    assert not made or ended in {"tool_calls", "length"}
    assert repair_reply(repaired.body, REQUEST, PLAIN).body is repaired.body
    orjson.dumps(repaired.body)
