"""Whole answers, errors and lists of models in the messages shape."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from turnout.core.ids import RequestId, ToolCallId
from turnout.core.json import JsonObject
from turnout.core.usage import Usage
from turnout.errors import GatewayError
from turnout.gateway.dialog.conversation import Call, Reasoning, Refusal, Text
from turnout.gateway.dialog.events import Native, Reply
from turnout.gateway.exchange import Completion, DeclaredTool, InferenceRequest, UpstreamError
from turnout.gateway.wire.messages import MessagesShape
from turnout.gateway.wire.messages.models import write_model, write_models
from turnout.gateway.wire.messages.usage import read_usage
from turnout.testing.exchange import PLAIN_REQUEST, REPORT, deployment
from turnout.testing.messages.turns import MessagesTurn, message, text, tool_use

SHAPE = MessagesShape()
ASKED = replace(PLAIN_REQUEST, shape="messages")
USAGE = Usage(100, 20)


def _write(
    reply: Reply, native: Native | None = None, request: InferenceRequest = ASKED
) -> dict[str, Any]:
    written = SHAPE.write(Completion(reply, native, USAGE, REPORT), request, RequestId("req-1"))
    body: dict[str, Any] = orjson.loads(written)
    return body


def test_an_upstreams_own_answer_keeps_every_field() -> None:
    """Id, model and `routing` are the gateway's."""
    turn = MessagesTurn((text("Hi."),), usage={"input_tokens": 1, "output_tokens": 2, "x": 3})
    body = {**message(turn, "upstream-name", 1), "container": {"id": "c"}}
    written = _write(Reply((Text("Hi."),), "stop"), Native("messages", body))
    assert written == {**body, "id": "req-1", "model": "m", "routing": written["routing"]}


def test_an_answer_of_another_shape_is_written_afresh() -> None:
    """Empty texts left out, arguments an object."""
    call = Call(ToolCallId("call_1"), "Read", "")
    body = _write(Reply((Text(""), Text("Reading."), call), "tool_calls"))
    assert body["content"] == [
        {"type": "text", "text": "Reading."},
        {"type": "tool_use", "id": "call_1", "name": "Read", "input": {}},
    ]
    assert (body["type"], body["role"], body["stop_reason"]) == ("message", "assistant", "tool_use")
    assert body["usage"]["input_tokens"] == 100


@pytest.mark.cases
def test_a_thought_has_a_signature_that_is_a_text() -> None:
    """Only for those that asked for thoughts."""
    reply = Reply((Reasoning("hm"), Text("A.")), "stop")
    shown = _write(reply, request=replace(ASKED, thinking=True))["content"][0]
    assert shown == {"type": "thinking", "thinking": "hm", "signature": ""}
    assert [block["type"] for block in _write(reply)["content"]] == ["text"]


def test_a_refusal_is_said_in_text_and_reason() -> None:
    """Other shapes have a place of its own for it."""
    body = _write(Reply((Refusal("No."),), "stop"))
    assert (body["content"], body["stop_reason"]) == ([text("No.")], "refusal")


def _read(body: JsonObject, request: InferenceRequest = ASKED, **changes: Any) -> Any:
    return SHAPE.read(body, request, replace(deployment("p/m"), **changes))


@pytest.mark.cases
def test_calls_left_in_the_text_are_read_where_the_catalog_says_so() -> None:
    """Only of tools that the request declares."""
    marked = '<tool_call>{"name": "Read", "arguments": {"path": "a.py"}}</tool_call>'
    said = f"Reading.\n{marked}"
    body = message(MessagesTurn((text(said),)), "m", 1)
    tool = {"name": "Read", "input_schema": {"type": "object"}}
    asked = replace(ASKED, tools=(DeclaredTool("Read"),), body={"tools": [tool]})
    read = _read(body, asked, calls_in_text=True)
    assert [(c.name, c.arguments) for c in read.reply.calls] == [("Read", '{"path":"a.py"}')]
    assert read.reply.text == "Reading."
    assert read.reply.finish == "tool_calls"
    assert "calls read from the text" in read.repairs
    assert _read(body, calls_in_text=True).reply.calls == ()
    alone = message(MessagesTurn((text(marked),)), "m", 1)
    assert _read(alone, asked).reply.calls == ()
    assert SHAPE.needs_whole(asked, replace(deployment("p/m"), calls_in_text=True))


def test_calls_are_mended() -> None:
    """Ids told apart, arguments an object, a call of no name left out."""
    blocks = (
        tool_use("Read", {}, "toolu_1"),
        {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": '{"path": "a.py"}'},
        {"type": "tool_use", "id": "toolu_2", "input": {}},
    )
    read = _read(message(MessagesTurn(blocks, stop_reason="end_turn"), "m", 1))
    first, second = read.reply.calls
    assert (first.id, first.arguments) == ("toolu_1", "{}")
    assert second.id not in {"", "toolu_1"}
    assert second.arguments == '{"path":"a.py"}'
    assert len(read.native.value["content"]) == 2
    assert read.native.value["stop_reason"] == "tool_use"
    assert len(read.repairs) == 4


@pytest.mark.parametrize(
    "body",
    [{}, {"content": None}, {"type": "error", "error": {"type": "api_error", "message": "x"}}],
)
def test_what_is_no_answer_is_the_upstreams_failure(body: JsonObject) -> None:
    """Never an empty success."""
    with pytest.raises(UpstreamError):
        _read(body)


@pytest.mark.cases
def test_counts_leave_out_what_a_cache_did_and_ours_hold_it() -> None:
    """Nothing is charged twice, nothing is forgotten."""
    counts = {
        "input_tokens": 100,
        "cache_creation_input_tokens": 500,
        "cache_read_input_tokens": 400,
        "cache_creation": {"ephemeral_5m_input_tokens": 500, "ephemeral_1h_input_tokens": 0},
        "output_tokens": 7,
    }
    assert read_usage(counts) == Usage(1_000, 7, 400, 500)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (402, "billing_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (409, "conflict_error"),
        (413, "request_too_large"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (502, "api_error"),
        (504, "timeout_error"),
        (529, "overloaded_error"),
    ],
)
def test_an_error_has_the_type_of_its_status(status: int, kind: str) -> None:
    """And the code by which programs tell it."""
    error = GatewayError("No.", status=status, code="because", param="tools", mend="Do.")
    reply = SHAPE.error(error)
    assert reply.status == status
    assert orjson.loads(reply.body) == {
        "type": "error",
        "error": {
            "type": kind,
            "message": "No. Do.",
            "details": {"error_code": "because", "param": "tools"},
        },
    }


@pytest.mark.cases
def test_an_upstreams_error_of_this_shape_stays_as_it_came() -> None:
    """Claude Code looks for its wording; that of another shape is said in this one."""
    own = b'{"type":"error","error":{"type":"rate_limit_error","message":"Slow down"}}'
    error = UpstreamError("answered 429", status=429, retry_after=7, body=own, shape="messages")
    reply = SHAPE.error(error)
    assert (reply.body, reply.headers) == (own, {"retry-after": "7"})
    other = UpstreamError("answered 429: Slow", status=429, body=b"{}", shape="chat", said="Slow")
    told = orjson.loads(SHAPE.error(other).body)["error"]
    assert (told["type"], told["message"]) == ("rate_limit_error", "Slow")


def test_a_refusal_that_no_retry_lifts_says_so() -> None:
    """The SDK retries every 429 otherwise."""
    error = GatewayError("Enough.", status=429, code="session_request_cap")
    assert SHAPE.error(error).headers == {"x-should-retry": "false"}


NAMES = tuple(f"m{n}" for n in range(25))


@pytest.mark.parametrize(
    ("query", "first", "last", "more"),
    [
        ({}, "m0", "m19", True),
        ({"limit": "1000"}, "m0", "m24", False),
        ({"after_id": "m19"}, "m20", "m24", False),
        ({"before_id": "m20", "limit": "5"}, "m15", "m19", True),
        ({"before_id": "m3"}, "m0", "m2", False),
    ],
)
def test_models_come_in_pages(query: dict[str, str], first: str, last: str, more: bool) -> None:
    """As the SDK turns them."""
    page = orjson.loads(write_models(NAMES, query))
    assert (page["first_id"], page["last_id"], page["has_more"]) == (first, last, more)
    assert page["data"][0] == orjson.loads(write_model(first))


@pytest.mark.parametrize("query", [{"limit": "0"}, {"limit": "x"}, {"after_id": "none"}])
def test_a_page_that_is_none_is_refused(query: dict[str, str]) -> None:
    """With the name of what is wrong."""
    with pytest.raises(GatewayError) as caught:
        write_models(NAMES, query)
    assert caught.value.param in query
