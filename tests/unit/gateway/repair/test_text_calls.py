"""Calls that were left in the text are found, and quoted ones are not."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from turnout.core.json import JsonObject
from turnout.gateway.repair.text_calls import TextCall, find_calls, holds_call_marks

DECLARED: dict[str, JsonObject] = {
    "look": {"properties": {"path": {"type": "string"}, "lines": {"type": "integer"}}},
    "finish": {},
}
JSON = '{"name": "look", "arguments": {"path": "a.py"}}'
CALL = TextCall("look", '{"path": "a.py"}')

MARKED = [
    f"<tool_call>\n{JSON}\n</tool_call>",
    f"<tool_call>{JSON}",
    '<function=look>{"path": "a.py"}</function>',
    "<tool_call><function=look>\n<parameter=path>\na.py\n</parameter>\n</function></tool_call>",
    "<function=look><parameter=path>a.py</parameter></function>",
    f"[TOOL_CALLS] [{JSON}]",
    f"[TOOL_CALLS]{JSON}",
    '[TOOL_CALLS]look[ARGS]{"path": "a.py"}',
    '[TOOL_CALLS]look[CALL_ID]abc123def[ARGS]{"path": "a.py"}',
    '[TOOL_CALLS]look{"path": "a.py"}',
]
UNMARKED = [
    f"```json\n{JSON}\n```",
    f"```\n{JSON}\n```",
    JSON,
    f"[{JSON}]",
    '{"type": "function", "function": {"name": "look", "arguments": "{\\"path\\": \\"a.py\\"}"}}',
    '{"name": "look", "parameters": {"path": "a.py"}}',
]


@pytest.mark.cases
@pytest.mark.parametrize("text", [*MARKED, *UNMARKED])
def test_a_call_is_found_in_every_form(text: str) -> None:
    """Every known way of writing counts."""
    found = find_calls(text, DECLARED)
    assert (found.calls, found.rest) == ((CALL,), "")


@pytest.mark.cases
@pytest.mark.parametrize(
    "text",
    [
        f"A call looks like `<tool_call>{JSON}</tool_call>`, I think.",
        f'You wrote "<tool_call>{JSON}</tool_call>".',
        f"You wrote:\n> <tool_call>{JSON}</tool_call>\nWhy?",
        f"You wrote:\n> ```json\n> {JSON}\n> ```",
    ],
)
def test_a_quotation_is_no_call(text: str) -> None:
    """A model that talks about a call does not make one."""
    found = find_calls(text, DECLARED)
    assert (found.calls, found.rest) == ((), text)


def test_several_calls_after_marks_of_their_own_are_several() -> None:
    """The newer form has one mark for each."""
    text = '[TOOL_CALLS]look[ARGS]{"path": "a.py"}[TOOL_CALLS]finish[ARGS]{}'
    found = find_calls(text, DECLARED)
    assert found.calls == (CALL, TextCall("finish", "{}"))


def test_prose_around_a_call_is_kept() -> None:
    """What the model said besides is its text."""
    text = f"I look first.\n```json\n{JSON}\n```\nThen:\n```json\n{JSON}\n```\nDone."
    found = find_calls(text, DECLARED)
    assert found.calls == (CALL, CALL)
    assert found.rest == "I look first.\n\nThen:\n\nDone."


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "rm", "arguments": {}}</tool_call>',
        '```json\n{"name": "rm", "arguments": {}}\n```',
        '{"arguments": {}}',
        '{"name": "look"}',
        '{"name": "look", "arguments": [1]}',
        '{"name": "look", "arguments": "nonsense"}',
        '<tool_call>{"name": "look", "arguments": {"path": "a',
        "<function=look><parameter=path>a",
        "<function=look><parameter=path>a</parameter>",
        '{"name": "look", "arguments": {"lines": NaN}}',
        "[" * 100_000,
        "1" * 10_000,
    ],
)
def test_what_is_cut_undeclared_or_no_object_is_no_call(text: str) -> None:
    """Nothing is guessed, and the text stays."""
    found = find_calls(text, DECLARED)
    assert (found.calls, found.rest) == ((), text)


def test_parameters_take_the_type_of_their_schema() -> None:
    """A string stays as written, a number becomes one."""
    text = "<function=look><parameter=path>42</parameter><parameter=lines>42</parameter></function>"
    (call,) = find_calls(text, DECLARED).calls
    assert json.loads(call.arguments) == {"path": "42", "lines": 42}


def test_a_line_end_inside_a_string_is_forgiven() -> None:
    """Small models write it raw."""
    text = '<tool_call>{"name": "look", "arguments": {"path": "a\nb"}}</tool_call>'
    (call,) = find_calls(text, DECLARED).calls
    assert json.loads(call.arguments) == {"path": "a\nb"}


@pytest.mark.parametrize(
    "piece",
    [
        "<tool_call>",
        "<function=",
        "<parameter=",
        "```json\n",
        "[TOOL_CALLS]",
        " \n",
        "<function=look>",
    ],
)
def test_hostile_text_is_read_in_linear_time(piece: str) -> None:
    """A mark repeated without end neither hangs nor fails."""
    text = piece * (400_000 // len(piece))
    assert find_calls(f"x{text}x", DECLARED).calls == ()


@given(
    arguments=st.dictionaries(st.text(), st.text() | st.integers() | st.none() | st.booleans()),
    style=st.sampled_from(["<tool_call>%s</tool_call>", "[TOOL_CALLS][%s]", "%s"]),
)
@example(arguments={"<function=": None}, style="<tool_call>%s</tool_call>")
def test_arguments_survive_the_way_through_text(arguments: dict[str, object], style: str) -> None:
    """What was written is what is read, and can be sent on as UTF-8."""
    written = style % json.dumps({"name": "finish", "arguments": arguments})
    (call,) = find_calls(written, DECLARED).calls
    assert json.loads(call.arguments) == arguments
    assert call.arguments.encode()


def test_marks_are_noticed_in_any_text() -> None:
    """A call that was not read still counts as one."""
    assert holds_call_marks("so: <tool_call>{")
    assert not holds_call_marks("so: {}")
