"""What the gateway and a model said to each other, as it stands in a body of each shape."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from turnout.core.ids import ToolCallId
from turnout.core.json import JsonObject
from turnout.gateway.connections.chat import ChatWeaver
from turnout.gateway.connections.messages import MessagesWeaver
from turnout.gateway.connections.offer import Offer, Place
from turnout.gateway.connections.responses import ResponsesWeaver
from turnout.gateway.connections.weaver import Ran, Weaver
from turnout.gateway.dialog.conversation import Call, Foreign, Reasoning, Text, ToolSpec
from turnout.gateway.dialog.events import Reply

PLACE = Place("git", "read")
NAME = "mcp__git__read"
SPEC = ToolSpec(NAME, "Reads.", {"type": "object"}, strict=False)
OFFER = Offer({"git": (SPEC,)}, {NAME: PLACE})
OURS, THEIRS = Call(ToolCallId("o"), NAME, '{"a":1}'), Call(ToolCallId("t"), "own", "{}")
ANSWER = Reply((Reasoning("hm", "sig"), Text("Look."), THEIRS, OURS), "tool_calls")
RAN = Ran(OURS, PLACE, "result")
FAILED = Ran(OURS, PLACE, "broken", is_error=True)
SCHEMA: Any = {"type": "object"}


def kept(weaver: Weaver) -> Mapping[ToolCallId, Sequence[JsonObject]]:
    """Return what is kept of one answer, under the client's call."""
    return {THEIRS.id: weaver.said(ANSWER, [RAN])}


def test_chat_has_functions_in_the_place_of_the_connection() -> None:
    """Other tools keep theirs; unknown fields stay."""
    other: Any = {"type": "function", "function": {"name": "own"}}
    last: Any = {"type": "function", "function": {"name": "last"}}
    named: Any = {"type": "mcp", "mcp": {"server": "git"}}
    body = {"seed": 1, "tools": [other, named, last]}
    function = {"name": NAME, "description": "Reads.", "parameters": SCHEMA}
    woven = ChatWeaver().declare(body, OFFER)
    expected = [other, {"type": "function", "function": function}, last]
    assert woven == {"seed": 1, "tools": expected}


@pytest.mark.parametrize(
    ("weaver", "body"),
    [
        (ChatWeaver(), {"tools": [{"type": "mcp", "mcp": {"server": "git"}}]}),
        (ResponsesWeaver(), {"tools": [{"type": "mcp", "server_label": "git"}]}),
        (MessagesWeaver(), {"mcp_servers": [{"name": "git"}]}),
    ],
)
def test_a_connection_that_offers_nothing_leaves_nothing(weaver: Weaver, body: JsonObject) -> None:
    """An empty list of tools is refused by some upstreams."""
    woven = weaver.declare(body, Offer({"git": ()}, {}))
    assert woven == {}
    assert weaver.choose(woven, "none") == {}


def test_a_choice_of_a_connections_tool_is_one_of_its_function() -> None:
    """Or of any, where it names none."""
    chat: Any = {"type": "mcp", "mcp": {"server": "git", "name": "read"}}
    named: Any = {"type": "mcp", "mcp": {"server": "git"}}
    woven = ChatWeaver().declare({"tools": [named], "tool_choice": chat}, OFFER)
    assert woven["tool_choice"] == {"type": "function", "function": {"name": NAME}}
    woven = ChatWeaver().declare({"tools": [named], "tool_choice": named}, OFFER)
    assert woven["tool_choice"] == "required"
    label: Any = {"type": "mcp", "server_label": "git"}
    body: Any = {"tools": [label], "tool_choice": {**label, "name": "read"}}
    assert ResponsesWeaver().declare(body, OFFER)["tool_choice"] == {
        "type": "function",
        "name": NAME,
    }


def test_chat_says_an_answer_and_results_as_messages() -> None:
    """An error is marked in the text: the shape has no field for it."""
    answer, result = ChatWeaver().said(ANSWER, [FAILED])
    calls = answer["tool_calls"]
    assert isinstance(calls, list)
    assert (answer["role"], answer["content"]) == ("assistant", "Look.")
    assert [call["id"] for call in calls] == ["t", "o"]
    assert result == {"role": "tool", "tool_call_id": "o", "content": "Error: broken"}


def test_chat_puts_back_what_the_client_never_saw() -> None:
    """In place of its message; its own results follow."""
    weaver = ChatWeaver()
    mine: Any = {"role": "assistant", "tool_calls": [{"id": "t"}]}
    done: Any = {"role": "tool", "tool_call_id": "t", "content": "x"}
    user: Any = {"role": "user", "content": "?"}
    body = weaver.restore({"messages": [user, mine, done]}, kept(weaver))
    assert body["messages"] == [user, *weaver.said(ANSWER, [RAN]), done]


def test_messages_say_thoughts_with_their_signatures() -> None:
    """Those that nobody signed are not taken back."""
    reply = Reply(
        (Reasoning("a", "sig"), Reasoning("", "", "enc"), Reasoning("b"), Text(""), OURS),
        "tool_calls",
    )
    answer, results = MessagesWeaver().said(reply, [FAILED])
    assert answer["content"] == [
        {"type": "thinking", "thinking": "a", "signature": "sig"},
        {"type": "redacted_thinking", "data": "enc"},
        {"type": "tool_use", "id": "o", "name": NAME, "input": {"a": 1}},
    ]
    assert results["content"] == [
        {"type": "tool_result", "tool_use_id": "o", "content": "broken", "is_error": True}
    ]


def test_messages_put_back_joins_the_results_of_both() -> None:
    """All results of an answer stand in the next message, before anything else."""
    weaver = MessagesWeaver()
    use: Any = {"type": "tool_use", "id": "t", "name": "own", "input": {}}
    result: Any = {"type": "tool_result", "tool_use_id": "t", "content": "x"}
    text: Any = {"type": "text", "text": "and?"}
    body = weaver.restore(
        {
            "messages": [
                {"role": "assistant", "content": [use]},
                {"role": "user", "content": [result, text]},
            ]
        },
        kept(weaver),
    )
    answer, ours = weaver.said(ANSWER, [RAN])
    first: Any = ours["content"]
    joined = {"role": "user", "content": [*first, result, text]}
    assert body["messages"] == [answer, joined]


def test_messages_take_servers_with_and_without_a_toolset() -> None:
    """What is left of the connection's fields is nothing."""
    tool = {"name": NAME, "description": "Reads.", "input_schema": SCHEMA}
    own: Any = {"name": "own", "input_schema": SCHEMA}
    toolset: Any = {"type": "mcp_toolset", "mcp_server_name": "git"}
    servers: Any = [{"type": "url", "name": "git"}]
    with_set = MessagesWeaver().declare({"mcp_servers": servers, "tools": [toolset, own]}, OFFER)
    assert with_set == {"tools": [tool, own]}
    without = MessagesWeaver().declare({"mcp_servers": servers, "tools": [own]}, OFFER)
    assert without == {"tools": [own, tool]}


def test_responses_have_calls_in_the_place_of_the_items_of_a_connection() -> None:
    """As function calls with their outputs; listings are dropped; strictness is off."""
    items: Any = [
        {"role": "user", "content": "?"},
        {"type": "mcp_list_tools", "id": "l", "server_label": "git", "tools": []},
        {
            "type": "mcp_call",
            "id": "mcp_1",
            "server_label": "git",
            "name": "read",
            "arguments": "{}",
            "output": "text",
        },
        {
            "type": "mcp_call",
            "id": "mcp_2",
            "server_label": "git",
            "name": "gone",
            "arguments": "{}",
            "error": "no",
        },
    ]
    named: Any = {"type": "mcp", "server_label": "git"}
    woven = ResponsesWeaver().declare({"input": items, "tools": [named]}, OFFER)
    assert woven["input"] == [
        items[0],
        {"type": "function_call", "call_id": "mcp_1", "name": NAME, "arguments": "{}"},
        {"type": "function_call_output", "call_id": "mcp_1", "output": "text"},
        {"type": "function_call", "call_id": "mcp_2", "name": "mcp__git__gone", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "mcp_2", "output": "Error: no"},
    ]
    tools: Any = woven["tools"]
    assert (tools[0]["name"], tools[0]["strict"]) == (NAME, False)


def test_responses_put_back_only_what_the_client_dropped() -> None:
    """A conversation that holds the items of the connection lacks nothing."""
    weaver = ResponsesWeaver()
    user: Any = {"role": "user", "content": "?"}
    said: Any = {"type": "message", "role": "assistant", "content": "Look."}
    call: Any = {"type": "function_call", "call_id": "t", "name": "own", "arguments": "{}"}
    done: Any = {"type": "function_call_output", "call_id": "t", "output": "x"}
    item: Any = {"type": "mcp_call", "id": "mcp_1"}
    body = weaver.restore({"input": [user, said, call, done]}, kept(weaver))
    assert body["input"] == [user, *weaver.said(ANSWER, [RAN]), done]
    whole = {"input": [user, said, call, item, done]}
    assert weaver.restore(whole, kept(weaver)) == whole


@pytest.mark.parametrize("weaver", [ChatWeaver(), MessagesWeaver(), ResponsesWeaver()])
def test_a_body_is_never_changed_in_place(weaver: Weaver) -> None:
    """The client's own is on the trail, and others may hold it."""
    body: Any = {"messages": [{"role": "user"}], "input": "hi", "tools": [{"type": "mcp"}]}
    before = repr(body)
    woven = weaver.extend(weaver.declare(body, OFFER), weaver.said(ANSWER, [RAN]))
    weaver.choose(woven, "none")
    assert repr(body) == before
    assert weaver.restore(body, {}) == body


def test_an_input_that_is_text_becomes_the_first_item() -> None:
    """So that the rounds can follow it."""
    woven = ResponsesWeaver().extend({"input": "hi"}, [{"type": "x"}])
    assert woven["input"] == [{"role": "user", "content": "hi"}, {"type": "x"}]


def test_parts_that_one_shape_alone_can_say_stay_in_it() -> None:
    """And are left out of the others."""
    reply = Reply((Foreign("messages", {"type": "server_tool_use"}),), "tool_calls")
    assert MessagesWeaver().said(reply, [])[0]["content"] == [{"type": "server_tool_use"}]
    assert ResponsesWeaver().said(reply, []) == ()
