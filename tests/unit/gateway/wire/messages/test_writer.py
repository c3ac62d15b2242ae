"""Streams that clients of the messages shape read."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from turnout.core.ids import ModelId, RequestId, ToolCallId
from turnout.core.usage import Usage
from turnout.errors import GatewayError
from turnout.gateway.dialog.conversation import Foreign
from turnout.gateway.dialog.events import (
    CallDelta,
    CallOpened,
    Ending,
    Event,
    ForeignPart,
    Native,
    Piece,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
)
from turnout.gateway.exchange import InferenceRequest, StreamDelta, StreamEnd, UpstreamError
from turnout.gateway.wire.messages import MessagesShape
from turnout.testing.exchange import PLAIN_REQUEST, REPORT

ASKED = replace(PLAIN_REQUEST, shape="messages", input_tokens_estimate=321)
THINKS = replace(ASKED, thinking=True)


def _write(
    *pieces: Piece, ending: Ending | None = None, request: InferenceRequest = ASKED
) -> list[dict[str, Any]]:
    writer = MessagesShape().writer(request, RequestId("req-1"))
    written = b"".join(writer.piece(StreamDelta(piece, ModelId("m"))) for piece in pieces)
    end = StreamEnd(ending or Ending("stop"), Usage(1_000, 20, 900), REPORT)
    written += writer.end(end)
    events = []
    for block in written.decode().removesuffix("\n\n").split("\n\n"):
        event, data = block.split("\n")
        events.append(orjson.loads(data.removeprefix("data: ")))
        assert event == f"event: {events[-1]['type']}"
    return events


def _said(*events: Event, **changes: Any) -> list[dict[str, Any]]:
    return _write(*(Piece((event,)) for event in events), **changes)


def _blocks(events: list[dict[str, Any]]) -> list[Any]:
    """Return each block's start, and what its deltas came to."""
    blocks: list[Any] = []
    for event in events:
        if event["type"] == "content_block_start":
            blocks.append([event["content_block"]["type"], ""])
        if event["type"] == "content_block_delta":
            delta = event["delta"]
            fields = ("text", "thinking", "partial_json")
            blocks[-1][1] += next((delta[f] for f in fields if f in delta), "")
    return blocks


@pytest.mark.cases
def test_the_start_estimates_the_input_and_the_end_counts_it() -> None:
    """Claude Code takes a zero at the start for no cost at all."""
    events = _said(TextDelta("Hi."))
    assert events[0]["message"]["usage"]["input_tokens"] == 321
    assert events[0]["message"]["model"] == "m"
    assert events[-2]["usage"] == {
        "input_tokens": 100,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 900,
        "output_tokens": 20,
    }
    assert events[-2]["routing"]["deployment"] == "p/m"


@pytest.mark.cases
def test_an_upstreams_zero_at_the_start_becomes_the_estimate() -> None:
    """Some servers count only at the end; what another counted stays."""
    for counts, shown in (({"input_tokens": 0, "output_tokens": 0}, 321), ({"input_tokens": 7}, 7)):
        start = {"type": "message_start", "message": {"id": "msg_1", "usage": counts}}
        events = _write(Piece((), Native("messages", start, "message_start")))
        assert events[0]["message"]["usage"]["input_tokens"] == shown
        assert events[0]["message"]["id"] == "req-1"


@pytest.mark.cases
def test_the_first_word_is_not_lost() -> None:
    """Where the upstream sends it with the role."""
    assert _blocks(_said(TextDelta("Hi"), TextDelta(" there"))) == [["text", "Hi there"]]


@pytest.mark.cases
def test_two_calls_are_two_blocks_one_after_the_other() -> None:
    """The second has no arguments at all, which clients read as an empty object."""
    events = _said(
        TextDelta("Reading."),
        CallOpened(0, ToolCallId("a"), "Read"),
        CallDelta(0, '{"path":'),
        CallDelta(0, '"a.py"}'),
        CallOpened(1, ToolCallId("b"), "List"),
        ending=Ending("tool_calls"),
    )
    kinds = [(e["type"].removeprefix("content_block_"), e["index"]) for e in events if "index" in e]
    assert kinds == [
        ("start", 0),
        ("delta", 0),
        ("stop", 0),
        ("start", 1),
        ("delta", 1),
        ("delta", 1),
        ("stop", 1),
        ("start", 2),
        ("stop", 2),
    ]
    assert events[-2]["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}
    starts = [e["content_block"] for e in events if e["type"] == "content_block_start"]
    assert starts[2] == {"type": "tool_use", "id": "b", "name": "List", "input": {}}


def test_calls_that_take_turns_come_one_after_the_other() -> None:
    """What comes for the second meanwhile waits until the first is whole."""
    events = _said(
        CallOpened(0, ToolCallId("a"), "f"),
        CallOpened(1, ToolCallId("b"), "g"),
        CallDelta(1, '{"y":'),
        CallDelta(0, '{"x":'),
        CallDelta(1, "2}"),
        CallDelta(0, "1}"),
    )
    assert _blocks(events) == [["tool_use", '{"x":1}'], ["tool_use", '{"y":2}']]


def test_a_call_is_sent_as_it_grows() -> None:
    """Nobody waits for the end of a long edit."""
    writer = MessagesShape().writer(ASKED, RequestId("req-1"))
    opened = Piece((CallOpened(0, ToolCallId("a"), "f"),))
    writer.piece(StreamDelta(opened, ModelId("m")))
    grown = writer.piece(StreamDelta(Piece((CallDelta(0, '{"x'),)), ModelId("m")))
    assert b"input_json_delta" in grown


@pytest.mark.cases
def test_a_tool_stop_without_a_call_ends_the_turn() -> None:
    """Claude Code would stall for ever."""
    assert _said(ending=Ending("tool_calls"))[-2]["delta"]["stop_reason"] == "end_turn"


@pytest.mark.parametrize(
    ("ending", "reason", "sequence"),
    [
        (Ending("stop"), "end_turn", None),
        (Ending("stop", stop_sequence="END"), "stop_sequence", "END"),
        (Ending("length"), "max_tokens", None),
        (Ending("content_filter"), "refusal", None),
    ],
)
def test_the_end_has_its_reason(ending: Ending, reason: str, sequence: str | None) -> None:
    """In the words of this shape."""
    delta = _said(TextDelta("x"), ending=ending)[-2]["delta"]
    assert delta == {"stop_reason": reason, "stop_sequence": sequence}


def test_a_refusal_is_text_and_the_reason() -> None:
    """Other shapes say it apart."""
    events = _said(RefusalDelta("I will "), RefusalDelta("not."))
    assert _blocks(events) == [["text", "I will not."]]
    assert events[-2]["delta"]["stop_reason"] == "refusal"


@pytest.mark.cases
def test_thoughts_of_others_have_a_signature_that_is_a_text() -> None:
    """The SDK's types want a string, and an event for it."""
    events = _said(ReasoningDelta("hm"), ReasoningDelta(" so"), TextDelta("A."), request=THINKS)
    assert _blocks(events) == [["thinking", "hm so"], ["text", "A."]]
    starts = [e["content_block"] for e in events if e["type"] == "content_block_start"]
    assert starts[0] == {"type": "thinking", "thinking": "", "signature": ""}
    deltas = [e["delta"] for e in events if e["type"] == "content_block_delta"]
    assert {"type": "signature_delta", "signature": ""} in deltas


def test_an_encrypted_thought_rides_in_the_signature() -> None:
    """It comes back with the conversation, marked as not of this shape's makers."""
    events = _said(ReasoningDelta("hm"), ReasoningDelta(encrypted="gAAA"), request=THINKS)
    signature = next(e["delta"]["signature"] for e in events if "signature" in e.get("delta", {}))
    assert signature == "turnout.gAAA"


@pytest.mark.parametrize(
    "request_",
    [
        ASKED,
        replace(ASKED, thinking=False),
        replace(THINKS, body={"thinking": {"display": "omitted"}}),
    ],
)
def test_thoughts_are_shown_only_to_those_that_asked_for_them(request_: InferenceRequest) -> None:
    """Others take the first block for the answer."""
    events = _said(ReasoningDelta("hm"), TextDelta("A."), request=request_)
    assert _blocks(events) == [["text", "A."]]


def test_what_only_another_shape_can_say_is_left_out() -> None:
    """And its events do not begin a message by themselves."""
    other = ForeignPart(Foreign("responses", {"type": "web_search_call"}))
    own = ForeignPart(Foreign("messages", {"type": "web_search_tool_result", "content": []}))
    assert _blocks(_said(other, own)) == [["web_search_tool_result", ""]]


def test_what_a_repair_adds_to_an_upstreams_own_events_comes_after_them() -> None:
    """With the next index, the block before it closed."""

    def native(name: str, **fields: Any) -> Piece:
        return Piece((), Native("messages", {"type": name, **fields}, name))

    text = {"type": "text", "text": ""}
    events = _write(
        native("message_start", message={"usage": {"input_tokens": 1}}),
        native("content_block_start", index=0, content_block=text),
        Piece((TextDelta("Mended."),)),
        native("message_start", message={}),
        native("content_block_start", index=0, content_block=text),
        native("content_block_stop", index=0),
    )
    kinds = [(e["type"].removeprefix("content_block_"), e["index"]) for e in events if "index" in e]
    assert [event["type"] for event in events].count("message_start") == 1
    assert kinds == [
        ("start", 0),
        ("stop", 0),
        ("start", 1),
        ("delta", 1),
        ("stop", 1),
        ("start", 2),
        ("stop", 2),
    ]


@pytest.mark.cases
def test_an_error_is_an_event_of_its_name() -> None:
    """Even before anything else was sent; an upstream's own body as it came."""
    writer = MessagesShape().writer(ASKED, RequestId("req-1"))
    cut = GatewayError("p/m began to answer, then broke off.", status=502, code="stream_cut")
    name, data = writer.error(cut).decode().strip().split("\n")
    assert name == "event: error"
    error = orjson.loads(data.removeprefix("data: "))
    assert (error["type"], error["error"]["type"]) == ("error", "api_error")
    own = b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
    upstream = UpstreamError("x", status=529, body=own, shape="messages")
    assert writer.error(upstream) == b"event: error\ndata: " + own + b"\n\n"
