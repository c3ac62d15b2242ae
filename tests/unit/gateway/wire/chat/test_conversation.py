"""A chat request as a conversation, and a conversation as a chat request."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from turnout.core.ids import ToolCallId
from turnout.core.json import JsonObject
from turnout.errors import GatewayError
from turnout.gateway.dialog.conversation import (
    Call,
    Conversation,
    Foreign,
    Media,
    Reasoning,
    Refusal,
    Result,
    Sampling,
    Schema,
    Text,
    ToolSpec,
    Turn,
)
from turnout.gateway.exchange import InferenceRequest
from turnout.gateway.wire.chat import ChatShape
from turnout.testing.exchange import PLAIN_REQUEST, deployment

SHAPE = ChatShape()
MODEL = deployment("acme/m")
HELLO = {"role": "user", "content": "Hello"}
LOOK = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}, "strict": True}
FOREIGN = ToolSpec("search", foreign=Foreign("messages", {"type": "web_search_20250305"}))


def _parsed(*messages: JsonObject, **fields: Any) -> InferenceRequest:
    body = {"model": "auto", "messages": list(messages or (HELLO,)), **fields}
    return SHAPE.parse(orjson.dumps(body), {})


def _said(*messages: JsonObject, **fields: Any) -> Conversation:
    return SHAPE.conversation(_parsed(*messages, **fields))


def _sent(said: Conversation, request: InferenceRequest = PLAIN_REQUEST) -> dict[str, Any]:
    return dict(SHAPE.prepare(replace(request, shape="messages"), MODEL, said))


def _calling(*ids: str) -> JsonObject:
    calls = [
        {"id": name, "type": "function", "function": {"name": "look", "arguments": "{}"}}
        for name in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def test_every_kind_of_message_becomes_a_turn() -> None:
    """In their order; results that follow one another are one turn."""
    said = _said(
        {"role": "developer", "content": "Be kind."},
        HELLO,
        {**_calling("a", "b"), "content": "I look.", "reasoning_content": "hm"},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "2"}]},
        {"role": "assistant", "content": "", "refusal": "No."},
    )
    a, b = ToolCallId("a"), ToolCallId("b")
    assert said.turns == (
        Turn("system", (Text("Be kind."),)),
        Turn("user", (Text("Hello"),)),
        Turn(
            "assistant",
            (Reasoning("hm"), Text("I look."), Call(a, "look", "{}"), Call(b, "look", "{}")),
        ),
        Turn("user", (Result(a, (Text("1"),)), Result(b, (Text("2"),)))),
        Turn("assistant", (Refusal("No."),)),
    )


@pytest.mark.parametrize(
    ("part", "media"),
    [
        (
            {
                "type": "image_url",
                "image_url": {"url": "data:x;base64,AA", "detail": "low"},
            },
            Media("image", "data:x;base64,AA", detail="low"),
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
            Media("audio", "data:audio/wav;base64,AA"),
        ),
        (
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:x;base64,AA"}},
            Media("file", "data:x;base64,AA", "a.pdf"),
        ),
    ],
)
def test_what_is_not_text_survives_the_way_there_and_back(part: JsonObject, media: Media) -> None:
    """Images, sounds and files."""
    text = {"type": "text", "text": "Look:"}
    said = _said({"role": "user", "content": [text, part]})
    assert said.turns == (Turn("user", (Text("Look:"), media)),)
    assert _sent(said)["messages"] == [{"role": "user", "content": [text, part]}]


def test_what_a_request_asks_for_beside_its_messages_is_read() -> None:
    """Sampling, form, effort, and who asks."""
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"x": 1}, "strict": True}}
    said = _said(
        max_completion_tokens=9,
        temperature=0.5,
        stop="END",
        seed=3,
        parallel_tool_calls=False,
        response_format=form,
        reasoning_effort="high",
        user="u",
        tools=[{"type": "function", "function": LOOK}],
        tool_choice="required",
    )
    assert said.sampling == Sampling(max_tokens=9, temperature=0.5, stop=("END",), seed=3)
    assert said.schema == Schema("a", {"x": 1}, strict=True)
    assert (said.effort, said.end_user, said.parallel_calls) == ("high", "u", False)
    assert said.tools == (ToolSpec("look", "Looks.", {"type": "object"}, strict=True),)
    assert said.tool_choice == "required"
    assert _said(response_format={"type": "json_object"}).any_json


def test_the_list_of_allowed_tools_narrows_the_tools() -> None:
    """No other shape has such a list."""
    tools = [{"type": "function", "function": {"name": name}} for name in ("look", "run")]
    allowed = {"mode": "auto", "tools": [{"type": "function", "function": {"name": "run"}}]}
    choice = {"type": "allowed_tools", "allowed_tools": allowed}
    said = _said(tools=tools, tool_choice=choice)
    assert [tool.name for tool in said.tools] == ["run"]


def test_the_old_form_of_calls_is_read_too() -> None:
    """Its result names no call: it answers the last one."""
    said = _said(
        HELLO,
        {"role": "assistant", "function_call": {"name": "look", "arguments": "{}"}},
        {"role": "function", "name": "look", "content": "1"},
        functions=[LOOK],
    )
    _, made, result = said.turns
    (call,) = made.parts
    assert isinstance(call, Call)
    assert result.parts == (Result(call.id, (Text("1"),)),)
    assert [tool.name for tool in said.tools] == ["look"]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 2}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"modalities": ["text", "audio"]}, "modalities"),
    ],
)
def test_what_no_other_shape_can_say_is_named(fields: dict[str, Any], param: str) -> None:
    """Rather than lost."""
    with pytest.raises(GatewayError) as caught:
        _said(**fields)
    assert (caught.value.status, caught.value.param) == (400, param)


@pytest.mark.cases
def test_calls_of_a_request_have_ids_and_no_index() -> None:
    """Two of them are two, in their order."""
    a, b = ToolCallId("a"), ToolCallId("b")
    calls = Turn("assistant", (Call(a, "look", '{"p":1}'), Call(b, "look", "")))
    results = Turn("user", (Result(a, (Text("1"),)), Result(b, ()), Text("Go on.")))
    body = _sent(Conversation((calls, results)))
    made, first, second, more = body["messages"]
    assert made["content"] is None
    assert [call["id"] for call in made["tool_calls"]] == ["a", "b"]
    assert [call["function"]["arguments"] for call in made["tool_calls"]] == ['{"p":1}', "{}"]
    assert all("index" not in call for call in made["tool_calls"])
    assert (first["tool_call_id"], first["content"], second["content"]) == ("a", "1", "")
    assert more == {"role": "user", "content": "Go on."}


def test_an_image_among_results_follows_them() -> None:
    """A tool message takes words alone."""
    result = Result(ToolCallId("a"), (Text("1"), Media("image", "data:x")))
    tool, user = _sent(Conversation((Turn("user", (result,)),)))["messages"]
    assert (tool["role"], tool["content"], user["role"]) == ("tool", "1", "user")
    assert user["content"] == [{"type": "image_url", "image_url": {"url": "data:x"}}]


@pytest.mark.cases
def test_parts_that_say_nothing_here_leave_nothing() -> None:
    """No empty messages, no empty texts: some servers refuse them."""
    said = Conversation(
        (
            Turn("user", (Text(""), Text("Hi"))),
            Turn("assistant", (Foreign("messages", {"type": "server_tool_use"}),)),
            Turn("assistant", (Text(""), Call(ToolCallId("a"), "look", "{}"))),
        )
    )
    user, made = _sent(said)["messages"]
    assert user["content"] == [{"type": "text", "text": "Hi"}]
    assert (made["role"], made["content"]) == ("assistant", None)


def test_a_providers_own_tool_of_another_shape_is_left_out() -> None:
    """Where others are left; alone, it is named in a refusal."""
    look = ToolSpec("look", parameters={"type": "object"})
    body = _sent(Conversation((Turn("user", (Text("Hi"),)),), (look, FOREIGN)))
    assert [tool["function"]["name"] for tool in body["tools"]] == ["look"]
    for alone in (
        Conversation((), (FOREIGN,)),
        Conversation((), (look, FOREIGN), tool_choice="search"),
    ):
        with pytest.raises(GatewayError, match="search") as caught:
            _sent(alone)
        assert caught.value.status == 400


def test_a_tool_that_takes_text_becomes_a_function_with_one_string() -> None:
    """Few servers know the other form; calls of the past are told alike."""
    patch = ToolSpec("patch", "Patches.", type="custom")
    call = Call(ToolCallId("a"), "patch", "*** Begin", "custom")
    body = _sent(Conversation((Turn("assistant", (call,)),), (patch,)))
    function = body["tools"][0]["function"]
    assert list(function["parameters"]["properties"]) == ["input"]
    told = body["messages"][0]["tool_calls"][0]["function"]
    assert orjson.loads(told["arguments"]) == {"input": "*** Begin"}


def test_only_the_catalog_says_how_a_model_is_made_to_think() -> None:
    """A field that a server does not know may be refused; an effort was asked for by name."""
    assert "reasoning_effort" not in _sent(Conversation((), thinking_budget=8_000))
    assert _sent(Conversation((), effort="low"))["reasoning_effort"] == "low"
    able = replace(MODEL, thinking_on={"enable_thinking": True})
    asked = replace(PLAIN_REQUEST, shape="messages", thinking=True)
    assert SHAPE.prepare(asked, able, Conversation(()))["enable_thinking"] is True


def test_cache_marks_are_kept_where_the_deployment_reads_them() -> None:
    """Elsewhere an unknown field may be refused."""
    said = Conversation((Turn("system", (Text("Be kind.", cached=True),)),))
    request = replace(PLAIN_REQUEST, shape="messages")
    marks = SHAPE.prepare(request, replace(MODEL, caching="marks"), said)
    assert "cache_control" in str(marks)
    assert "cache_control" not in str(_sent(said))


def test_the_same_conversation_is_the_same_bytes() -> None:
    """Prompt caches live on that."""
    said = _said(HELLO, _calling("a"), {"role": "tool", "tool_call_id": "a", "content": "1"})
    assert orjson.dumps(_sent(said)) == orjson.dumps(_sent(said))


def test_a_stream_is_asked_for_with_its_counts() -> None:
    """Whatever the client's shape."""
    body = _sent(_said(), replace(PLAIN_REQUEST, stream=True))
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})
    assert "stream" not in _sent(_said())
