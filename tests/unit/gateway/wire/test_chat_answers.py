"""Answers leave in the chat shape, whole and streamed."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from turnout.core.ids import DeploymentId, ModelId, ProviderName, RequestId
from turnout.core.inference import RoutingReport
from turnout.core.json import JsonValue
from turnout.core.money import Micros
from turnout.core.usage import Usage
from turnout.gateway.exchange import Completion, StreamDelta, StreamEnd, UpstreamError
from turnout.gateway.wire.chat_response import write_completion
from turnout.gateway.wire.chat_stream import delta_event, end_events, error_event
from turnout.gateway.wire.chat_usage import read_usage

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
END = StreamEnd(
    chunk={"created": 5, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    usage=Usage(7, 2),
    usage_body=None,
    report=REPORT,
)


def _events(raw: bytes) -> list[Any]:
    parts = [part.removeprefix(b"data: ") for part in raw.split(b"\n\n") if part]
    return [part if part == b"[DONE]" else orjson.loads(part) for part in parts]


def test_a_completion_carries_our_id_the_report_and_the_catalogs_model() -> None:
    """The id reads the receipt back; unknown fields pass."""
    body = {"id": "theirs", "model": "their/name", "choices": [], "vendor": {"x": 1}}
    written = orjson.loads(write_completion(Completion(body, Usage(7, 2), REPORT), REQUEST_ID))
    assert (written["id"], written["model"], written["vendor"]) == ("req-1", "m", {"x": 1})
    assert written["routing"]["deployment"] == "p/m"
    assert written["routing"]["cost_micros"] == 12
    assert written["usage"]["total_tokens"] == 9


def test_the_upstreams_own_usage_is_not_rewritten() -> None:
    """Counts that we do not know may matter to the client."""
    body = {"choices": [], "usage": {"prompt_tokens": 1, "vendor_tokens": 9}}
    written = orjson.loads(write_completion(Completion(body, Usage(1), REPORT), REQUEST_ID))
    assert written["usage"] == body["usage"]


def test_the_finish_event_carries_the_report_and_done_comes_last() -> None:
    """Without having asked, a client sees no usage chunk."""
    finish, done = _events(end_events(END, REQUEST_ID, include_usage=False))
    assert finish["choices"][0]["finish_reason"] == "stop"
    assert finish["routing"]["cost_micros"] == 12
    assert "usage" not in finish
    assert done == b"[DONE]"


@pytest.mark.parametrize("sent", [{}, {"prompt_tokens": None}, "none"])
def test_a_usage_that_counts_nothing_is_replaced_by_what_was_charged(sent: JsonValue) -> None:
    """A client that adds up what it used must not take an estimate for nothing."""
    completion = Completion({"choices": [], "usage": sent}, Usage(7, 2, estimated=True), REPORT)
    written = orjson.loads(write_completion(completion, REQUEST_ID))
    assert (written["usage"]["prompt_tokens"], written["usage"]["completion_tokens"]) == (7, 2)


def test_usage_is_shown_once_where_asked_for() -> None:
    """The usage chunk has no choices, as clients of the shape expect."""
    _, usage, done = _events(end_events(END, REQUEST_ID, include_usage=True))
    assert (usage["choices"], usage["usage"]["completion_tokens"]) == ([], 2)
    assert done == b"[DONE]"
    theirs = replace(END, usage_body={"prompt_tokens": 7, "x": 1})
    assert _events(end_events(theirs, REQUEST_ID, include_usage=True))[1]["usage"]["x"] == 1


def test_each_delta_is_one_event_under_our_id() -> None:
    """One id for the whole stream, whoever answers."""
    (event,) = _events(delta_event(StreamDelta({"id": "theirs", "choices": []}), REQUEST_ID))
    assert (event["id"], event["object"]) == ("req-1", "chat.completion.chunk")


def test_an_error_event_survives_line_ends_in_the_upstreams_body() -> None:
    """Several `data:` lines are one event to every decoder."""
    error = UpstreamError("x", status=503, body=b'{"error":\r\n{"message": "busy"}\n}')
    raw = error_event(error)
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
