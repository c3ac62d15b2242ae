"""Conversations of other shapes as messages bodies, and the other way."""

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
    Result,
    Sampling,
    Text,
    ToolSpec,
    Turn,
)
from turnout.gateway.wire.messages import MessagesShape
from turnout.testing.exchange import PLAIN_REQUEST, deployment
from turnout.testing.messages.rules import request_faults

SHAPE = MessagesShape()
DEPLOYMENT = deployment("p/claude")
HELLO = Turn("user", (Text("Hello"),))
HI = {"role": "user", "content": "Hi"}


def _body(said: Conversation, **changes: Any) -> Any:
    body = SHAPE.prepare(PLAIN_REQUEST, replace(DEPLOYMENT, **changes), said)
    assert request_faults(body, {"sig"}) == []
    return body


def _call(name: str, arguments: str = "{}") -> Call:
    return Call(ToolCallId(name), "read", arguments)


def _result(name: str, text: str = "ok") -> Result:
    return Result(ToolCallId(name), (Text(text),))


def test_instructions_that_come_first_are_the_system_prompt() -> None:
    """Those that come later stay where they were said."""
    turns = (Turn("system", (Text("A"),)), HELLO, Turn("system", (Text("B"),)))
    body = _body(Conversation(turns))
    assert body["system"] == "A"
    assert [m["role"] for m in body["messages"]] == ["user"]
    assert [b["text"] for b in body["messages"][0]["content"]] == ["Hello", "B"]


def test_instructions_alone_become_the_question() -> None:
    """The API wants at least one message."""
    body = _body(Conversation((Turn("system", (Text("Say hello."),)),)))
    assert body["messages"] == [{"role": "user", "content": "Say hello."}]
    assert "system" not in body


def test_results_of_parallel_calls_come_together_and_first() -> None:
    """In other shapes each is a message of its own, and text may stand between them."""
    turns = (
        HELLO,
        Turn("assistant", (_call("a"), _call("b"))),
        Turn("user", (_result("a"),)),
        Turn("user", (Text("And hurry."),)),
        Turn("user", (_result("b"),)),
    )
    message = _body(Conversation(turns))["messages"][-1]
    kinds = [(b["type"], b.get("tool_use_id")) for b in message["content"]]
    assert kinds == [("tool_result", "a"), ("tool_result", "b"), ("text", None)]


def test_ids_that_begin_anew_in_each_answer_are_told_apart() -> None:
    """Each result still belongs to its call, and ids hold only what the API takes."""
    turns = (
        HELLO,
        Turn("assistant", (_call("functions.read:0"),)),
        Turn("user", (_result("functions.read:0", "first"),)),
        Turn("assistant", (_call("functions.read:0"),)),
        Turn("user", (_result("functions.read:0", "second"),)),
    )
    messages = _body(Conversation(turns))["messages"]
    pairs = [
        (messages[at]["content"][0]["id"], messages[at + 1]["content"][0]["tool_use_id"])
        for at in (1, 3)
    ]
    assert pairs == [("functions_read_0",) * 2, ("functions_read_0_2",) * 2]


@pytest.mark.cases
def test_a_call_that_a_client_sends_twice_is_one_call() -> None:
    """Some repeat the calls of an answer in a second field of the same message."""
    turns = (
        HELLO,
        Turn("assistant", (_call("a"), Text("Reading."), _call("a"))),
        Turn("user", (_result("a"),)),
    )
    content = _body(Conversation(turns))["messages"][1]["content"]
    assert [block["type"] for block in content] == ["tool_use", "text"]


@pytest.mark.cases
@pytest.mark.parametrize("empty", ["", " \n"])
def test_empty_texts_are_not_sent(empty: str) -> None:
    """An upstream refuses them, beside a call as well as alone."""
    turns = (
        HELLO,
        Turn("assistant", (Text(empty), _call("a"))),
        Turn("user", (Result(ToolCallId("a"), (Text(empty),)),)),
        Turn("assistant", (Text(empty),)),
        Turn("user", (Text("Go on."),)),
    )
    messages = _body(Conversation(turns))["messages"]
    assert [b["type"] for b in messages[1]["content"]] == ["tool_use"]
    assert [m["role"] for m in messages] == ["user", "assistant", "user", "user"]


@pytest.mark.parametrize(
    ("arguments", "input_"),
    [
        ("", {}),
        ("{}", {}),
        ('{"a": 1}', {"a": 1}),
        ('{"a": ', {"arguments": '{"a": '}),
        ("[1]", {"arguments": "[1]"}),
    ],
)
def test_arguments_are_an_object_whatever_the_model_wrote(
    arguments: str, input_: JsonObject
) -> None:
    """What is none is kept as a text in one."""
    turns = (HELLO, Turn("assistant", (_call("a", arguments),)), Turn("user", (_result("a"),)))
    assert _body(Conversation(turns))["messages"][1]["content"][0]["input"] == input_


def test_a_tool_of_free_text_becomes_a_function_of_one_text() -> None:
    """Its declaration and its calls."""
    call = Call(ToolCallId("a"), "apply_patch", "*** Begin Patch", type="custom")
    said = Conversation(
        (HELLO, Turn("assistant", (call,)), Turn("user", (_result("a"),))),
        tools=(ToolSpec("apply_patch", type="custom"),),
    )
    body = _body(said)
    assert list(body["tools"][0]["input_schema"]["properties"]) == ["input"]
    assert body["messages"][1]["content"][0]["input"] == {"input": "*** Begin Patch"}


def test_a_tool_that_another_provider_runs_is_left_out() -> None:
    """And with it a choice that names it."""
    theirs = Foreign("responses", {"type": "web_search"})
    said = Conversation(
        (HELLO,), tools=(ToolSpec("web_search", foreign=theirs),), tool_choice="web_search"
    )
    body = _body(said)
    assert "tools" not in body
    assert "tool_choice" not in body


@pytest.mark.parametrize(
    ("choice", "parallel", "written"),
    [
        ("auto", None, None),
        ("auto", False, {"type": "auto", "disable_parallel_tool_use": True}),
        ("required", None, {"type": "any"}),
        ("none", False, {"type": "none"}),
        ("read", True, {"type": "tool", "name": "read"}),
    ],
)
def test_a_tool_choice_is_written(
    choice: str, parallel: bool | None, written: JsonObject | None
) -> None:
    """With whether calls may be parallel."""
    said = Conversation(
        (HELLO,), tools=(ToolSpec("read"),), tool_choice=choice, parallel_calls=parallel
    )
    assert _body(said).get("tool_choice") == written


def test_sampling_fits_the_ranges_of_the_api() -> None:
    """A limit is always sent; a temperature of 2 is the highest there is here."""
    body = _body(Conversation((HELLO,), sampling=Sampling(temperature=2.0, stop=("END", " "))))
    assert body["max_tokens"] == DEPLOYMENT.max_output
    assert body["temperature"] == 1.0
    assert body["stop_sequences"] == ["END"]


@pytest.mark.parametrize(
    ("media", "block"),
    [
        (
            Media("image", "data:image/jpg;base64,aGk="),
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/jpeg", "data": "aGk="},
            },
        ),
        (
            Media("image", "https://example.org/a.png"),
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        ),
        (
            Media("file", "data:application/pdf;base64,aGk=", "a.pdf"),
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="},
                "title": "a.pdf",
            },
        ),
        (
            Media("file", "data:text/csv,a%2Cb"),
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "a,b"},
            },
        ),
    ],
)
def test_media_are_written_as_the_api_has_them(media: Media, block: JsonObject) -> None:
    """By content or by address."""
    assert _body(Conversation((Turn("user", (media,)),)))["messages"][0]["content"] == [block]


@pytest.mark.parametrize(
    "media",
    [
        Media("audio", "data:audio/wav;base64,aGk="),
        Media("image", "data:image/bmp;base64,aGk="),
        Media("image", "data:image/png;base64,%%%"),
        Media("file", "file-123"),
    ],
)
def test_media_that_the_api_cannot_take_are_refused(media: Media) -> None:
    """As the client's mistake, before anything is sent."""
    with pytest.raises(GatewayError) as caught:
        _body(Conversation((Turn("user", (media,)),)))
    assert (caught.value.status, caught.value.code) == (400, "unsupported_content")


def test_thoughts_of_another_maker_are_not_sent() -> None:
    """A signed thought is, an unsigned one only to those that want it."""
    thoughts = (Reasoning("mine", "sig"), Reasoning("theirs"), Text("So."))
    said = Conversation((HELLO, Turn("assistant", thoughts), HELLO))
    sent = _body(said)["messages"][1]["content"]
    assert [b["type"] for b in sent] == ["thinking", "text"]
    wanting = replace(DEPLOYMENT, reasoning_back=True)
    body: Any = SHAPE.prepare(PLAIN_REQUEST, wanting, said)
    signatures = [b.get("signature") for b in body["messages"][1]["content"]]
    assert signatures == ["sig", "", None]


THINKING = {"thinking": {"type": "enabled", "budget_tokens": 4_000}}


def test_thinking_is_switched_as_the_catalog_says() -> None:
    """Within the limit of the answer, and without what does not go with it."""
    asked = replace(PLAIN_REQUEST, thinking=True)
    thinker = replace(DEPLOYMENT, thinking_on=THINKING)
    said = Conversation((HELLO,), sampling=Sampling(max_tokens=2_000, temperature=0.0))
    body = SHAPE.prepare(asked, thinker, said)
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 1_999}
    assert "temperature" not in body
    short = replace(said, sampling=Sampling(max_tokens=500))
    assert "thinking" not in SHAPE.prepare(asked, thinker, short)


def test_thinking_waits_where_the_request_cannot_have_it() -> None:
    """A forced call forbids it, and so does an open loop that began without it."""
    asked = replace(PLAIN_REQUEST, thinking=True)
    thinker = replace(DEPLOYMENT, thinking_on=THINKING, max_output=9_000)
    forced = Conversation((HELLO,), tools=(ToolSpec("read"),), tool_choice="required")
    assert "thinking" not in SHAPE.prepare(asked, thinker, forced)
    turns = (HELLO, Turn("assistant", (_call("a"),)), Turn("user", (_result("a"),)))
    assert "thinking" not in SHAPE.prepare(asked, thinker, Conversation(turns))
    thought = (Reasoning("hm", "sig"), _call("a"))
    turns = (HELLO, Turn("assistant", thought), Turn("user", (_result("a"),)))
    assert "thinking" in SHAPE.prepare(asked, thinker, Conversation(turns))


def test_an_effort_is_said_to_those_that_think_as_they_see_fit() -> None:
    """Beside a schema."""
    adaptive = replace(DEPLOYMENT, thinking_on={"thinking": {"type": "adaptive"}})
    body = SHAPE.prepare(PLAIN_REQUEST, adaptive, Conversation((HELLO,), effort="minimal"))
    assert body["output_config"] == {"effort": "low"}
    assert "output_config" not in _body(Conversation((HELLO,), effort="low"))


def test_fields_that_a_deployment_refuses_are_left_out() -> None:
    """Whoever set them."""
    said = Conversation((HELLO,), sampling=Sampling(temperature=0.5))
    assert "temperature" not in _body(said, leaves_out=frozenset({"temperature"}))


@pytest.mark.cases
def test_what_claude_code_notes_for_its_maker_reaches_no_other_prompt() -> None:
    """The line changes with every request: it would spoil any cache."""
    body = {
        "model": "auto",
        "max_tokens": 9,
        "system": [
            {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.0; cch=0a1b2;"},
            {"type": "text", "text": "You are Claude.", "cache_control": {"type": "ephemeral"}},
        ],
        "messages": [{"role": "user", "content": "Hi"}],
    }
    said = SHAPE.conversation(SHAPE.parse(orjson.dumps(body), {}))
    assert said.turns[0] == Turn("system", (Text("You are Claude.", cached=True),))


def test_a_user_id_that_other_apis_refuse_is_not_passed_on() -> None:
    """Claude Code's holds a device and a session."""
    for user, kept in (("user_1", "user_1"), ("u" * 65, None), ("", None)):
        body = {"model": "auto", "messages": [HI], "metadata": {"user_id": user}}
        assert SHAPE.conversation(SHAPE.parse(orjson.dumps(body), {})).end_user == kept


@pytest.mark.cases
@pytest.mark.parametrize("content", [None, "", [], [{"type": "text", "text": ""}]])
def test_a_message_without_content_says_nothing(content: Any) -> None:
    """It is no turn of the conversation."""
    body = {
        "model": "auto",
        "max_tokens": 9,
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": content},
            {"role": "user", "content": "Still there?"},
        ],
    }
    request = SHAPE.parse(orjson.dumps(body), {})
    assert [turn.role for turn in SHAPE.conversation(request).turns] == ["user", "user"]
    own = SHAPE.prepare(request, DEPLOYMENT, None)
    assert request_faults(own, ()) == []
