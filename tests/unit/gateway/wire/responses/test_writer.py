"""Answers as clients of the responses shape read them."""

import orjson
import pytest
from tests.unit.gateway.wire.responses.samples import BY, ID, REPORT, SHAPE, parsed, request, types

from turnout.core.usage import Usage
from turnout.errors import GatewayError
from turnout.gateway.dialog.conversation import Call, Foreign, Reasoning, Text
from turnout.gateway.dialog.events import (
    CallDelta,
    CallOpened,
    Ending,
    ForeignPart,
    Native,
    Piece,
    ReasoningDelta,
    Reply,
    TextDelta,
)
from turnout.gateway.exchange import Completion, StreamDelta, StreamEnd, UpstreamError
from turnout.gateway.wire.responses.seal import read_seal

TOOLS = [
    {"type": "custom", "name": "apply_patch"},
    {"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}]},
    {"type": "namespace", "name": "mcp__a__", "tools": [{"type": "function", "name": "js"}]},
    {"type": "tool_search", "execution": "client"},
    {"type": "local_shell"},
    {"type": "apply_patch"},
]


def stream(*events, finish="stop", **fields):
    """Return what the client reads of these events."""
    writer = SHAPE.writer(request(**fields), ID)
    raw = b"".join(writer.piece(StreamDelta(Piece((event,)), BY.model)) for event in events)
    return parsed(raw + writer.end(StreamEnd(Ending(finish), Usage(7, 3, 2, 1), REPORT)))


def called(name, arguments, type_="function"):
    """Return the item that a client of `TOOLS` reads for a call."""
    reply = Reply((Call("c1", name, arguments, type_),), "tool_calls")
    raw = SHAPE.write(Completion(reply, None, Usage(1, 1), REPORT), request(tools=TOOLS), ID)
    (item,) = orjson.loads(raw)["output"]
    events = stream(
        CallOpened(0, "c1", name, type_),
        *(CallDelta(0, piece) for piece in arguments),
        finish="tool_calls",
        tools=TOOLS,
    )
    assert events[-1]["response"]["output"] == [item]
    return {k: v for k, v in item.items() if k not in {"id", "status", "call_id"}}


def test_every_event_says_what_it_is():
    """Type, number, and a response where the API has one."""
    events = stream(ReasoningDelta("Hm."), TextDelta("Hi"), TextDelta("!"))
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert types(events) == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert all(e["summary_index"] == 0 for e in events if "summary" in e["type"])
    assert events[0]["response"]["id"] == events[-1]["response"]["id"] == ID


@pytest.mark.cases
def test_usage_has_the_details_that_clients_count_with():
    """Cached and written tokens of the input, thoughts of the output."""
    usage = stream(TextDelta("Hi"))[-1]["response"]["usage"]
    assert usage["input_tokens_details"] == {"cached_tokens": 2, "cache_write_tokens": 1}
    assert usage["output_tokens_details"] == {"reasoning_tokens": 0}
    assert usage["total_tokens"] == 10


def test_the_counts_of_another_shape_are_written_in_this_one():
    """An upstream of another shape names them otherwise."""
    writer = SHAPE.writer(request(), ID)
    theirs = {"prompt_tokens": 7, "completion_tokens": 3}
    native = Native("chat", {"choices": []})
    ending = Ending("stop", natives=(native,), usage_native=theirs)
    last = parsed(writer.end(StreamEnd(ending, Usage(7, 3), REPORT)))[-1]
    assert last["response"]["usage"]["input_tokens"] == 7
    assert "prompt_tokens" not in last["response"]["usage"]


@pytest.mark.cases
def test_a_call_without_text_is_opened_before_it_is_closed():
    """The item of the call, and no message that nobody said."""
    events = stream(CallOpened(0, "c1", "f"), CallDelta(0, "{}"), finish="tool_calls")
    assert types(events)[2:6] == [
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
    ]
    assert [item["id"][:3] for item in events[-1]["response"]["output"]] == ["fc_"]


def test_calls_that_take_turns_keep_their_arguments():
    """Two calls at once are closed in their order."""
    events = stream(
        CallOpened(0, "c1", "f"),
        CallOpened(1, "c2", "g"),
        CallDelta(1, '{"b"'),
        CallDelta(0, "{}"),
        CallDelta(1, ":2}"),
        finish="tool_calls",
    )
    output = events[-1]["response"]["output"]
    assert [(i["call_id"], i["arguments"]) for i in output] == [("c1", "{}"), ("c2", '{"b":2}')]


@pytest.mark.cases
@pytest.mark.parametrize(
    ("name", "arguments", "item"),
    [
        (
            "apply_patch",
            '{"input": "*** Begin"}',
            {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin"},
        ),
        (
            "functions__exec",
            '{"input":"ls"}',
            {"type": "custom_tool_call", "name": "exec", "namespace": "functions", "input": "ls"},
        ),
        (
            "mcp__a__js",
            '{"a":1}',
            {
                "type": "function_call",
                "name": "js",
                "namespace": "mcp__a__",
                "arguments": '{"a":1}',
            },
        ),
        (
            "tool_search",
            '{"query":"x"}',
            {"type": "tool_search_call", "execution": "client", "arguments": {"query": "x"}},
        ),
        (
            "tool_search",
            "no json",
            {
                "type": "tool_search_call",
                "execution": "client",
                "arguments": {"input": "no json"},
            },
        ),
        (
            "local_shell",
            '{"command":["ls"]}',
            {"type": "local_shell_call", "action": {"type": "exec", "env": {}, "command": ["ls"]}},
        ),
        ("other", "{}", {"type": "function_call", "name": "other", "arguments": "{}"}),
    ],
)
def test_a_call_has_the_form_in_which_the_client_declared_the_tool(name, arguments, item):
    """Whatever form the model's own shape gave it, streamed and whole."""
    assert called(name, arguments) == item


def test_a_custom_call_of_a_model_that_knows_them_is_streamed_as_it_comes():
    """Free text needs no unwrapping."""
    events = stream(
        CallOpened(0, "c1", "apply_patch", "custom"),
        CallDelta(0, "*** "),
        CallDelta(0, "End"),
        finish="tool_calls",
        tools=TOOLS,
    )
    deltas = [e["delta"] for e in events if e["type"].endswith("input.delta")]
    assert deltas == ["*** ", "End"]


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_an_answer_that_was_cut_short_is_incomplete(finish):
    """With the reason, and the item that was cut."""
    events = stream(TextDelta("Hal"), finish=finish)
    response = events[-1]["response"]
    reason = "max_output_tokens" if finish == "length" else "content_filter"
    assert events[-1]["type"] == "response.incomplete"
    assert response["status"] == "incomplete"
    assert response["incomplete_details"] == {"reason": reason}
    assert response["output"][0]["status"] == "incomplete"


@pytest.mark.cases
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (GatewayError("It broke.", status=502, code="stream_cut"), "server_error"),
        (UpstreamError("said no", status=429), "rate_limit_exceeded"),
    ],
)
def test_an_error_after_the_start_fails_the_response(error, code):
    """Nested as the API nests it; never a completed response."""
    writer = SHAPE.writer(request(), ID)
    raw = writer.piece(StreamDelta(Piece((TextDelta("Hal"),)), BY.model)) + writer.error(error)
    last = parsed(raw)[-1]
    assert last["type"] == "response.failed"
    assert last["response"]["status"] == "failed"
    assert last["response"]["error"]["code"] == code
    assert last["response"]["id"] == ID


def test_a_signed_thought_is_closed_with_its_proof():
    """So that the client can give it back."""
    events = stream(ReasoningDelta("Hm."), ReasoningDelta(signature="sig"), TextDelta("Hi"))
    thought = events[-1]["response"]["output"][0]
    seal = read_seal(thought["encrypted_content"])
    assert (seal.maker, seal.signature) == (BY.model, "sig")
    again = SHAPE.conversation(request(input=[thought, {"role": "user", "content": "x"}]))
    assert again.turns[0].parts == (Reasoning("Hm.", "sig", "", BY.model),)


def test_a_call_that_the_gateway_made_itself_is_an_item():
    """A connection's tool: opened, done, and between them what became of it."""
    made = {"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "t", "arguments": "{}"}
    part = ForeignPart(Foreign("responses", {**made, "output": "o", "status": "completed"}))
    events = stream(part, TextDelta("Hi"))
    assert types(events)[2:7] == [
        "output_item.added",
        "mcp_call.in_progress",
        "mcp_call_arguments.done",
        "mcp_call.completed",
        "output_item.done",
    ]
    assert [i["type"] for i in events[-1]["response"]["output"]] == ["mcp_call", "message"]


def test_what_was_asked_is_repeated():
    """Clients show the settings of a response from the response."""
    response = stream(TextDelta("Hi"), temperature=0.5, metadata={"a": "b"}, store=False)[0]
    body = response["response"]
    assert (body["temperature"], body["metadata"], body["store"]) == (0.5, {"a": "b"}, False)


def test_an_answer_says_which_deployment_gave_it():
    """In the response object, whole and streamed."""
    completion = Completion(Reply((Text("Hi"),), "stop"), None, Usage(1, 1), REPORT)
    whole = orjson.loads(SHAPE.write(completion, request(), ID))
    assert whole["routing"]["deployment"] == BY.id
    assert whole["model"] == BY.model
    assert stream(TextDelta("Hi"))[-1]["response"]["routing"] == whole["routing"]
