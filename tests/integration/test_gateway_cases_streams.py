"""Streams that are not quite what they should be, as clients of every shape hear them."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import aiohttp
import orjson
import pytest
from tests.integration.spoken import SHAPES, Heard, Spoken, ask

from turnout.core.json import JsonObject
from turnout.core.money import Price
from turnout.core.usage import Usage
from turnout.gateway.stages.attempts.fallback import Limits
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, RunningGateway, catalog_at, running_gateway
from turnout.testing.messages import MessagesRefusal, ScriptedMessagesServer
from turnout.testing.model_server import Refusal, ScriptedModelServer
from turnout.testing.responses import ResponsesTurn, ScriptedResponsesServer

pytestmark = pytest.mark.cases

M = replace(deployment("p/m"), price=Price(input=1_000_000, output=2_000_000))
ONE_TRY = GatewaySetup(limits=Limits(attempts=1))
EVENTS = {"Content-Type": "text/event-stream"}
USED = Usage(input_tokens=100, output_tokens=20)
COUNTS: JsonObject = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
CALLS = [("read_file", {"path": "a.py"}), ("read_file", {})]

shapes = pytest.mark.parametrize("shape", SHAPES)


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    """Yield a client for the gateway."""
    async with aiohttp.ClientSession() as session:
        yield session


async def _heard(
    http: aiohttp.ClientSession, server: Any, upstream: Any, shape: Spoken
) -> tuple[Heard, RunningGateway]:
    async with server:
        catalog = catalog_at(server.base_url, M, shape=upstream)
        async with running_gateway(catalog, ONE_TRY) as gateway:
            heard = await ask(http, gateway, shape, stream=True, tools=True)
    return heard, gateway


async def _from_chat(
    http: aiohttp.ClientSession, chunks: Sequence[JsonObject | bytes], shape: Spoken
) -> tuple[Heard, RunningGateway]:
    lines = [
        chunk if isinstance(chunk, bytes) else b"data: " + orjson.dumps(chunk) + b"\n\n"
        for chunk in chunks
    ]
    raw = b"".join([*lines, b"data: [DONE]\n\n"])
    server = ScriptedModelServer([Refusal(200, raw=raw, headers=EVENTS)])
    return await _heard(http, server, "chat", shape)


def _chunk(delta: JsonObject | None = None, finish: str | None = None, **more: Any) -> JsonObject:
    head: JsonObject = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return {**head, "choices": [choice], **more}


ROLE, HI, THERE = (
    _chunk({"role": "assistant", "content": ""}),
    _chunk({"content": "Hi "}),
    _chunk({"content": "there."}),
)
STOP = _chunk(finish="stop")
LAST: JsonObject = {**_chunk(), "choices": [], "usage": COUNTS}
ODD: dict[str, list[JsonObject | bytes]] = {
    "a vendor's own counts beside the counts": [
        {**ROLE, "x_groq": {"id": "req_1"}},
        HI,
        THERE,
        {**STOP, "x_groq": {"id": "req_1", "usage": COUNTS}},
        LAST,
    ],
    "counts with the finish and again": [ROLE, HI, THERE, {**STOP, "usage": COUNTS}, LAST],
    "counts that grow with every chunk": [
        {**ROLE, "usage": {**COUNTS, "completion_tokens": 0}},
        {**HI, "usage": {**COUNTS, "completion_tokens": 7}},
        {**THERE, "usage": {**COUNTS, "completion_tokens": 14}},
        {**STOP, "usage": COUNTS},
        LAST,
    ],
    "no counts until the last chunk": [{**c, "usage": None} for c in (ROLE, HI, THERE, STOP)]
    + [LAST],
    "chunks without a choice": [
        {**ROLE, "choices": [], "prompt_filter_results": [{"prompt_index": 0}]},
        ROLE,
        HI,
        {**ROLE, "choices": []},
        THERE,
        STOP,
        LAST,
    ],
    "comments between the chunks": [b": PROCESSING\n\n", ROLE, b":\n\n", HI, THERE, STOP, LAST],
    "empty fields of every kind": [
        _chunk({"role": "assistant", "content": None, "tool_calls": None, "refusal": None}),
        _chunk({"role": "assistant", "content": "Hi ", "tool_calls": [], "reasoning": ""}),
        _chunk({"role": "assistant", "content": "there.", "function_call": None}),
        _chunk({"content": "", "tool_calls": []}, "stop"),
        LAST,
    ],
    "the last words beside the finish": [
        ROLE,
        HI,
        _chunk({"content": "there."}, "stop", usage=COUNTS),
    ],
    "a finish that comes twice": [ROLE, HI, THERE, STOP, STOP, LAST],
    "line ends of another system": [
        b"data: " + orjson.dumps(chunk) + b"\r\n\r\n" for chunk in (ROLE, HI, THERE, STOP, LAST)
    ],
    "names and ids on the events": [
        b"id: 1\nevent: message\nretry: 9\ndata: " + orjson.dumps(chunk) + b"\n\n"
        for chunk in (ROLE, HI, THERE, STOP, LAST)
    ],
    "no space behind the colon": [
        b"data:" + orjson.dumps(chunk) + b"\n\n" for chunk in (ROLE, HI, THERE, STOP, LAST)
    ],
    "a chunk of which nothing is known": [
        ROLE,
        HI,
        {"object": "telemetry", "ms": 5},
        THERE,
        STOP,
        LAST,
    ],
}


@shapes
@pytest.mark.parametrize("odd", ODD)
async def test_an_odd_stream_is_a_right_answer(
    http: aiohttp.ClientSession, shape: Spoken, odd: str
) -> None:
    """Every word once, one end, and the counts once, before the end."""
    heard, gateway = await _from_chat(http, ODD[odd], shape)
    assert (heard.status, heard.error, heard.text, heard.calls) == (200, "", "Hi there.", ())
    assert heard.finish in {"stop", "end_turn", "completed"}
    assert heard.usage == (100, 20)
    receipt = gateway.receipt()
    assert (receipt.status, receipt.usage, receipt.cost_micros) == ("ok", USED, 140)
    if shape == "chat":
        events = heard.raw.strip().split(b"\n\n")
        assert events[-1] == b"data: [DONE]"
        assert heard.raw.count(b'"finish_reason":"stop"') == 1
        assert sum(b'"prompt_tokens"' in event for event in events) == 1


BOOM = {"message": "boom", "code": 500, "type": "server_error"}
BROKEN: dict[str, JsonObject | bytes] = {
    "no choice": {"choices": [], "error": BOOM},
    "nothing else": {"error": BOOM},
    "words alone": {"error": "boom"},
    "beside a choice": {**_chunk(finish="error"), "error": BOOM},
    "an event of its own": b'event: error\ndata: {"error":{"message":"boom"}}\n\n',
    "an object that is one": {"object": "error", "message": "boom", "code": 500},
}
"""Errors that come in a stream, after the status was sent."""


@shapes
@pytest.mark.parametrize("form", BROKEN)
@pytest.mark.parametrize("seen", [True, False], ids=["later", "first"])
async def test_an_error_in_a_stream_is_never_an_empty_answer(
    http: aiohttp.ClientSession, shape: Spoken, form: str, seen: bool
) -> None:
    """In the upstream's own words; with a status where nothing was said before."""
    before = [ROLE, HI] if seen else []
    heard, gateway = await _from_chat(http, [*before, BROKEN[form]], shape)
    assert "boom" in heard.error
    assert (heard.finish, heard.usage) == ("", None)
    receipt = gateway.receipt()
    if seen:
        assert (heard.status, heard.text, receipt.status) == (200, "Hi ", "truncated")
    else:
        assert (heard.status, receipt.status, receipt.cost_micros) == (502, "failed", 0)


def _item(place: int, **more: Any) -> JsonObject:
    kind = {"type": "function_call", "id": f"fc_{place}", "call_id": f"call_{place}"}
    return {**kind, "name": "read_file", "arguments": "", "status": "in_progress", **more}


ARGUMENTS = '{"path": "a.py"}'
DONE = [_item(0, arguments=ARGUMENTS, status="completed"), _item(1, status="completed")]
DONE[1] = {**DONE[1], "arguments": "{}"}
OPEN: JsonObject = {"id": "resp_1", "object": "response", "status": "in_progress", "output": []}
WHOLE: JsonObject = {
    **OPEN,
    "status": "completed",
    "output": DONE,
    "usage": {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120},
}


def _said(kind: str, place: int, **more: Any) -> JsonObject:
    return {"type": f"response.{kind}", "output_index": place, "item_id": f"fc_{place}", **more}


def _added(place: int) -> JsonObject:
    return _said("output_item.added", place, item=_item(place))


def _pieces(place: int) -> list[JsonObject]:
    stem = "function_call_arguments.delta"
    return [_said(stem, place, delta=ARGUMENTS[:5]), _said(stem, place, delta=ARGUMENTS[5:])]


def _told(place: int) -> JsonObject:
    whole = str(DONE[place]["arguments"])
    return _said("function_call_arguments.done", place, arguments=whole)


def _closed(place: int) -> JsonObject:
    return _said("output_item.done", place, item=DONE[place])


CREATED: JsonObject = {"type": "response.created", "response": OPEN}
COMPLETED: JsonObject = {"type": "response.completed", "response": WHOLE}
BOTH_TOLD = [_told(0), _closed(0), _added(1), _told(1), _closed(1)]
CALLED: dict[str, list[JsonObject]] = {
    "arguments only as a whole": [CREATED, _added(0), *BOTH_TOLD, COMPLETED],
    "arguments in pieces and as a whole": [
        CREATED,
        _added(0),
        *_pieces(0),
        *BOTH_TOLD,
        COMPLETED,
    ],
    "arguments only in the closed item": [
        CREATED,
        *(_added(0), _closed(0), _added(1), _closed(1)),
        COMPLETED,
    ],
    "items closed but never opened": [CREATED, _closed(0), _closed(1), COMPLETED],
    "items only at the end": [CREATED, COMPLETED],
    "pieces of an item that nobody announced": [
        CREATED,
        *_pieces(0),
        *(_told(0), _closed(0), _closed(1)),
        COMPLETED,
    ],
    "nothing at the end": [
        CREATED,
        _added(0),
        *BOTH_TOLD,
        {**COMPLETED, "response": {**WHOLE, "output": []}},
    ],
    "an end that is not nested": [CREATED, _added(0), *BOTH_TOLD, {**WHOLE, **COMPLETED}],
    "events of somebody else's": [
        {"type": "codex.rate_limits", "plan": "pro"},
        CREATED,
        {"type": "keepalive", "sequence_number": 1},
        _added(0),
        *BOTH_TOLD,
        COMPLETED,
    ],
}


@shapes
@pytest.mark.parametrize("odd", CALLED)
async def test_calls_of_the_responses_shape_arrive_once_and_whole(
    http: aiohttp.ClientSession, shape: Spoken, odd: str
) -> None:
    """However little of the protocol an upstream keeps to; nothing leaks that is not of it."""
    server = ScriptedResponsesServer([ResponsesTurn(raw=tuple(CALLED[odd]))])
    heard, gateway = await _heard(http, server, "responses", shape)
    assert (heard.status, heard.error, heard.text) == (200, "", "")
    assert [(name, orjson.loads(text)) for name, text in heard.calls] == CALLS
    assert heard.finish in {"tool_calls", "tool_use", "completed"}
    assert heard.usage == (100, 20)
    assert b"codex" not in heard.raw
    receipt = gateway.receipt()
    assert (receipt.status, receipt.usage) == ("ok", USED)
    assert receipt.tools_called == ("read_file", "read_file")


def _block(place: int, block: JsonObject) -> JsonObject:
    return {"type": "content_block_start", "index": place, "content_block": block}


def _grown(place: int, **delta: Any) -> JsonObject:
    return {"type": "content_block_delta", "index": place, "delta": delta}


def _shut(place: int) -> JsonObject:
    return {"type": "content_block_stop", "index": place}


def _tool(place: int) -> JsonObject:
    return {"type": "tool_use", "id": f"toolu_{place}", "name": "read_file", "input": {}}


def _start(**usage: int) -> JsonObject:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    return {"type": "message_start", "message": {**head, "usage": usage}}


def _end(**usage: int) -> JsonObject:
    delta = {"stop_reason": "tool_use", "stop_sequence": None}
    return {"type": "message_delta", "delta": delta, "usage": usage}


BEGUN = _start(input_tokens=100, output_tokens=1)
ENDED = [_end(output_tokens=20), {"type": "message_stop"}]
JSON = [_grown(0, type="input_json_delta", partial_json=p) for p in ("", '{"path": ', '"a.py"}')]
FIRST, SECOND = _block(0, _tool(0)), _block(1, _tool(1))
BLOCKS: dict[str, list[JsonObject]] = {
    "two blocks": [BEGUN, FIRST, *JSON, _shut(0), SECOND, _shut(1), *ENDED],
    "blocks that are never closed": [BEGUN, FIRST, *JSON, SECOND, *ENDED],
    "input in the first event": [
        BEGUN,
        _block(0, {**_tool(0), "input": {"path": "a.py"}}),
        _shut(0),
        SECOND,
        _shut(1),
        *ENDED,
    ],
    "counts only at the end": [
        _start(input_tokens=0, output_tokens=0),
        *(FIRST, *JSON, _shut(0), SECOND, _shut(1)),
        _end(input_tokens=100, output_tokens=20),
        ENDED[1],
    ],
    "pings and events of which nothing is known": [
        {"type": "ping"},
        BEGUN,
        {"type": "telemetry"},
        FIRST,
        *JSON,
        {"type": "ping"},
        _shut(0),
        SECOND,
        _shut(1),
        *ENDED,
    ],
}


@shapes
@pytest.mark.parametrize("odd", BLOCKS)
async def test_blocks_of_the_messages_shape_are_calls_of_their_own(
    http: aiohttp.ClientSession, shape: Spoken, odd: str
) -> None:
    """Never one call of two inputs, never a call without an end."""
    answer = MessagesRefusal(200, raw=_in_messages(BLOCKS[odd]), headers=EVENTS)
    heard, gateway = await _heard(http, ScriptedMessagesServer([answer]), "messages", shape)
    assert (heard.status, heard.error, heard.text) == (200, "", "")
    assert [(name, orjson.loads(text)) for name, text in heard.calls] == CALLS
    assert heard.finish in {"tool_calls", "tool_use", "completed"}
    assert heard.usage == (100, 20)
    receipt = gateway.receipt()
    assert (receipt.status, receipt.usage) == ("ok", USED)


@shapes
async def test_blocks_that_overlap_are_an_error(http: aiohttp.ClientSession, shape: Spoken) -> None:
    """Whose input the rest was, nobody can tell: better no end than a wrong call."""
    events = [BEGUN, FIRST, JSON[1], SECOND, JSON[2], _shut(1), _shut(0), *ENDED]
    answer = MessagesRefusal(200, raw=_in_messages(events), headers=EVENTS)
    heard, gateway = await _heard(http, ScriptedMessagesServer([answer]), "messages", shape)
    assert (heard.status, heard.finish, heard.usage) == (200, "", None)
    assert heard.error
    assert gateway.receipt().status == "truncated"


def _in_messages(events: Sequence[JsonObject]) -> bytes:
    return b"".join(
        b"event: %s\ndata: %s\n\n" % (str(event["type"]).encode(), orjson.dumps(event))
        for event in events
    )


CALL_BEGUN = _chunk(
    {
        "tool_calls": [
            {
                "index": 0,
                "id": "call_1",
                "type": "function",
                "function": {"name": "read_file", "arguments": '{"path": '},
            }
        ]
    }
)
STOPPED: dict[str, tuple[str, list[JsonObject]]] = {
    "chat, in the text": ("chat", [ROLE, HI]),
    "chat, in a call": ("chat", [ROLE, HI, CALL_BEGUN]),
    "chat, with its counts": ("chat", [ROLE, HI, LAST]),
    "messages, in the text": (
        "messages",
        [BEGUN, _block(0, {"type": "text", "text": ""}), _grown(0, type="text_delta", text="Hi ")],
    ),
    "messages, in a call": ("messages", [BEGUN, FIRST, *JSON[:2]]),
    "messages, before the end": ("messages", [BEGUN, FIRST, *JSON, _shut(0)]),
    "responses, in a call": ("responses", [CREATED, _added(0), *_pieces(0)]),
    "responses, before the end": ("responses", [CREATED, _added(0), *BOTH_TOLD]),
}


@shapes
@pytest.mark.parametrize("place", STOPPED)
async def test_a_stream_that_stops_cleanly_in_the_middle_is_cut_all_the_same(
    http: aiohttp.ClientSession, shape: Spoken, place: str
) -> None:
    """The connection says nothing of it, nor does a last line: what is missing is the finish."""
    upstream, sent = STOPPED[place]
    if upstream == "chat":
        heard, gateway = await _from_chat(http, sent, shape)
    elif upstream == "messages":
        answer = MessagesRefusal(200, raw=_in_messages(sent), headers=EVENTS)
        heard, gateway = await _heard(http, ScriptedMessagesServer([answer]), upstream, shape)
    else:
        server = ScriptedResponsesServer([ResponsesTurn(raw=tuple(sent))])
        heard, gateway = await _heard(http, server, upstream, shape)
    assert (heard.status, heard.finish, heard.usage) == (200, "", None)
    assert heard.error
    receipt = gateway.receipt()
    assert (receipt.status, receipt.tools_called) == ("truncated", ())
    assert receipt.usage.estimated
