"""Answers leave in the chat shape, whole and streamed."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from turnout.core.ids import DeploymentId, ModelId, ProviderName, RequestId, ToolCallId
from turnout.core.inference import RoutingReport
from turnout.core.json import JsonValue
from turnout.core.money import Micros
from turnout.core.usage import Usage
from turnout.gateway.dialog.conversation import Call, Reasoning, Refusal, Text
from turnout.gateway.dialog.events import (
    CallDelta,
    CallOpened,
    Ending,
    Event,
    Native,
    Piece,
    ReasoningDelta,
    Reply,
    TextDelta,
)
from turnout.gateway.exchange import (
    Completion,
    InferenceRequest,
    StreamDelta,
    StreamEnd,
    UpstreamError,
)
from turnout.gateway.wire.chat.answer import write_completion
from turnout.gateway.wire.chat.usage import read_usage
from turnout.gateway.wire.chat.writer import ChatWriter
from turnout.testing.exchange import PLAIN_REQUEST

REQUEST_ID = RequestId("req-1")
REPORT = RoutingReport(
    model=ModelId("m"),
    provider=ProviderName("p"),
    deployment=DeploymentId("p/m"),
    objective="cost",
    task="coding",
    task_source="request",
    session=None,
    sticky=False,
    fallback=False,
    policy_revision=3,
    reason="p/m: the only one.",
    cost_micros=Micros(12),
)
FINISH = {"created": 5, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
END = StreamEnd(Ending("stop", natives=(Native("chat", FINISH),)), Usage(7, 2), REPORT)
ASKS_USAGE = replace(PLAIN_REQUEST, include_usage=True)
PATCH = {"type": "custom", "custom": {"name": "patch"}}
FREE_TEXT = replace(PLAIN_REQUEST, body={**PLAIN_REQUEST.body, "tools": [PATCH]})


def _written(body: dict[str, Any], usage: Usage, request: InferenceRequest = PLAIN_REQUEST) -> Any:
    completion = Completion(Reply((), "stop"), Native("chat", body), usage, REPORT)
    return orjson.loads(write_completion(completion, request, REQUEST_ID))


def _afresh(reply: Reply, request: InferenceRequest = PLAIN_REQUEST) -> Any:
    completion = Completion(reply, None, Usage(7, 2), REPORT)
    return orjson.loads(write_completion(completion, request, REQUEST_ID))


def _ended(request: InferenceRequest, end: StreamEnd = END) -> list[Any]:
    return _events(ChatWriter(request, REQUEST_ID).end(end))


def _streamed(*events: Event, request: InferenceRequest = PLAIN_REQUEST) -> list[Any]:
    writer = ChatWriter(request, REQUEST_ID)
    raw = b"".join(writer.piece(StreamDelta(Piece((event,)), ModelId("m"))) for event in events)
    return _events(raw + writer.end(StreamEnd(Ending("stop"), Usage(7, 2), REPORT)))


def _events(raw: bytes) -> list[Any]:
    parts = [part.removeprefix(b"data: ") for part in raw.split(b"\n\n") if part]
    return [part if part == b"[DONE]" else orjson.loads(part) for part in parts]


def test_a_completion_carries_our_id_the_report_and_the_catalogs_model() -> None:
    """The id reads the receipt back; unknown fields pass."""
    body = {"id": "theirs", "model": "their/name", "choices": [], "vendor": {"x": 1}}
    written = _written(body, Usage(7, 2))
    assert (written["id"], written["model"], written["vendor"]) == ("req-1", "m", {"x": 1})
    assert written["routing"]["deployment"] == "p/m"
    assert written["routing"]["cost_micros"] == 12
    assert written["usage"]["total_tokens"] == 9


def test_the_upstreams_own_usage_is_not_rewritten() -> None:
    """Counts that we do not know may matter to the client."""
    body = {"choices": [], "usage": {"prompt_tokens": 1, "vendor_tokens": 9}}
    written = _written(body, Usage(1))
    assert written["usage"] == body["usage"]


def test_the_finish_event_carries_the_report_and_done_comes_last() -> None:
    """Without having asked, a client sees no usage chunk."""
    finish, done = _ended(PLAIN_REQUEST)
    assert finish["choices"][0]["finish_reason"] == "stop"
    assert finish["routing"]["cost_micros"] == 12
    assert "usage" not in finish
    assert done == b"[DONE]"


@pytest.mark.parametrize("sent", [{}, {"prompt_tokens": None}, "none"])
def test_a_usage_that_counts_nothing_is_replaced_by_what_was_charged(sent: JsonValue) -> None:
    """A client that adds up what it used must not take an estimate for nothing."""
    written = _written({"choices": [], "usage": sent}, Usage(7, 2, estimated=True))
    assert (written["usage"]["prompt_tokens"], written["usage"]["completion_tokens"]) == (7, 2)


def test_usage_is_shown_once_where_asked_for() -> None:
    """The usage chunk has no choices, as clients of the shape expect."""
    _, usage, done = _ended(ASKS_USAGE)
    assert (usage["choices"], usage["usage"]["completion_tokens"]) == ([], 2)
    assert done == b"[DONE]"
    theirs = replace(END.ending, usage_native={"prompt_tokens": 7, "x": 1})
    assert _ended(ASKS_USAGE, replace(END, ending=theirs))[1]["usage"]["x"] == 1


def test_each_delta_is_one_event_under_our_id() -> None:
    """One id for the whole stream, whoever answers."""
    piece = Piece((), Native("chat", {"id": "theirs", "choices": []}))
    writer = ChatWriter(PLAIN_REQUEST, REQUEST_ID)
    (event,) = _events(writer.piece(StreamDelta(piece, ModelId("m"))))
    assert (event["id"], event["object"]) == ("req-1", "chat.completion.chunk")


def test_an_error_event_survives_line_ends_in_the_upstreams_body() -> None:
    """Several `data:` lines are one event to every decoder."""
    error = UpstreamError("x", status=503, body=b'{"error":\r\n{"message": "busy"}\n}')
    raw = ChatWriter(PLAIN_REQUEST, REQUEST_ID).error(error)
    lines = [line.removeprefix(b"data: ") for line in raw.strip().split(b"\n")]
    assert raw.count(b"\n\n") == 1
    assert orjson.loads(b"\n".join(lines)) == {"error": {"message": "busy"}}


def test_cached_tokens_are_part_of_the_prompt_under_either_name() -> None:
    """Providers name them differently and mean the same."""
    counts = {"prompt_tokens": 10, "completion_tokens": 2}
    expected = Usage(10, 2, cache_read_input_tokens=8)
    assert read_usage({**counts, "prompt_tokens_details": {"cached_tokens": 8}}) == expected
    assert read_usage({**counts, "prompt_cache_hit_tokens": 8}) == expected


def test_counts_that_are_none_are_no_usage() -> None:
    """Null, an empty object or words are not zero tokens."""
    for counts in (
        None,
        {},
        [],
        "12",
        {"prompt_tokens": None},
        {"prompt_tokens": -1},
        {"prompt_tokens": 1e300},
    ):
        assert read_usage(counts) is None


def test_an_answer_of_another_shape_is_written_afresh() -> None:
    """Thought, refusal, text and calls, each in its field."""
    parts = (Reasoning("hm"), Text("a"), Text("b"), Call(ToolCallId("c"), "f", ""))
    written = _afresh(Reply(parts, "tool_calls"))
    (choice,) = written["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"] == {
        "role": "assistant",
        "content": "ab",
        "refusal": None,
        "reasoning_content": "hm",
        "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        ],
    }
    assert written["usage"]["total_tokens"] == 9
    refused = _afresh(Reply((Refusal("No."),), "stop"))["choices"][0]["message"]
    assert (refused["content"], refused["refusal"]) == (None, "No.")


def test_a_stream_of_another_shape_is_written_afresh() -> None:
    """The role comes first and once; every fragment has its index."""
    *chunks, finish, done = _streamed(
        ReasoningDelta("hm"),
        TextDelta("a"),
        CallOpened(0, ToolCallId("c"), "f"),
        CallDelta(0, "{}"),
    )
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas == [
        {"role": "assistant", "reasoning_content": "hm"},
        {"content": "a"},
        {
            "tool_calls": [
                {
                    "index": 0,
                    "id": "c",
                    "type": "function",
                    "function": {"name": "f", "arguments": ""},
                }
            ]
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]},
    ]
    assert {chunk["model"] for chunk in chunks} == {"m"}
    assert (finish["choices"][0]["finish_reason"], done) == ("stop", b"[DONE]")


def test_an_empty_stream_still_says_who_speaks() -> None:
    """Clients read the role of the first chunk."""
    opening, finish, _ = _streamed()
    assert opening["choices"][0]["delta"] == {"role": "assistant"}
    assert finish["routing"]["model"] == "m"


def test_a_free_text_call_comes_back_as_it_was_declared() -> None:
    """The deployment knew a function in its place."""
    call = Call(ToolCallId("c"), "patch", '{"input":"*** Begin"}')
    message = _afresh(Reply((call,), "tool_calls"), FREE_TEXT)["choices"][0]["message"]
    custom = {"name": "patch", "input": "*** Begin"}
    assert message["tool_calls"] == [{"id": "c", "type": "custom", "custom": custom}]
    *chunks, _, _ = _streamed(
        CallOpened(0, ToolCallId("c"), "patch"),
        CallDelta(0, '{"input":'),
        CallDelta(0, '"*** Begin"}'),
        request=FREE_TEXT,
    )
    fragments = [chunk["choices"][0]["delta"]["tool_calls"][0] for chunk in chunks]
    assert fragments[0]["custom"] == {"name": "patch", "input": ""}
    assert [f["custom"]["input"] for f in fragments[1:]] == ["*** Begin"]
