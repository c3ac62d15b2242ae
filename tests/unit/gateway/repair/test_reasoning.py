"""Thoughts go back to the model that had them, and to nobody else."""

from dataclasses import replace

import pytest

from turnout.core.ids import ModelId, ToolCallId
from turnout.core.json import JsonObject, JsonValue
from turnout.gateway.dialog.conversation import Reasoning
from turnout.gateway.dialog.thoughts import Thought
from turnout.gateway.repair.reasoning import with_reasoning
from turnout.testing.exchange import deployment

PLAIN = deployment("acme/m")
THINKS = replace(PLAIN, reasoning_back=True)
CALL: JsonObject = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
USER: JsonObject = {"role": "user", "content": "Hi"}
CALLED: JsonObject = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT: JsonObject = {"role": "tool", "tool_call_id": "c", "content": "x"}
KEPT = {ToolCallId("c"): Thought(ModelId("m"), (Reasoning("h"), Reasoning("m")))}


def _answer(messages: JsonValue) -> JsonObject:
    assert isinstance(messages, list)
    (answer,) = [m for m in messages if isinstance(m, dict) and m["role"] == "assistant"]
    return answer


@pytest.mark.cases
def test_a_thought_that_the_client_dropped_is_restored() -> None:
    """Servers refuse a call without the thought that led to it."""
    sent = with_reasoning([USER, CALLED, RESULT], KEPT, THINKS)
    assert _answer(sent) == {**CALLED, "reasoning_content": "hm"}


def test_a_thought_goes_under_the_name_that_the_server_reads() -> None:
    """Whichever name the client found it under."""
    named = replace(THINKS, reasoning_field="reasoning")
    told = {**CALLED, "reasoning_content": "hm"}
    assert _answer(with_reasoning([USER, told, RESULT], {}, named)) == {
        **CALLED,
        "reasoning": "hm",
    }


def test_what_the_client_sends_back_counts() -> None:
    """It is the model's own, word for word."""
    told = {**CALLED, "reasoning_content": "as it was"}
    assert _answer(with_reasoning([USER, told, RESULT], KEPT, THINKS)) is told


@pytest.mark.cases
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_details"])
def test_who_does_not_want_thoughts_gets_none(field: str) -> None:
    """Whatever their name, with calls and without."""
    for message in (CALLED, {"role": "assistant", "content": "so"}):
        told = {**message, field: "hm"}
        assert _answer(with_reasoning([USER, told], KEPT, PLAIN)) == message


@pytest.mark.cases
def test_what_another_model_thought_is_not_passed_on() -> None:
    """The field is there, as such servers insist, and says nothing."""
    other = replace(THINKS, model=ModelId("other"))
    told = {**CALLED, "reasoning_content": "secret"}
    for message in (CALLED, told):
        sent = _answer(with_reasoning([USER, message, RESULT], KEPT, other))
        assert sent == {**CALLED, "reasoning_content": ""}


def test_messages_without_thoughts_are_not_copied() -> None:
    """Prompt caches live on that, and so does the time."""
    messages: JsonValue = [USER, CALLED, RESULT]
    assert with_reasoning(messages, {}, PLAIN) is messages
    assert with_reasoning("nonsense", {}, PLAIN) == "nonsense"
