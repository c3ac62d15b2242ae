"""What an upstream sends on purpose to break whoever reads it ends in a clean error."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import orjson
import pytest
from tests.integration.spoken import SHAPES, Spoken, ask

from turnout.core.json import JsonValue
from turnout.gateway.stages.attempts.fallback import Limits
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, RunningGateway, catalog_at, running_gateway

pytestmark = pytest.mark.faults

DEEP = "[" * 400 + "]" * 400
ENVELOPE = '"id":"c","object":"chat.completion","created":1,"model":"m"'
HELLO = f'{{{ENVELOPE},"choices":[{{"index":0,"delta":{{"content":"Hello"}}}}]}}'
STOP = f'{{{ENVELOPE},"choices":[{{"index":0,"delta":{{}},"finish_reason":"stop"}}]}}'
shapes = pytest.mark.parametrize("shape", SHAPES)


def _answer(body: str, kind: str = "application/json", head: str = "HTTP/1.1 200 OK") -> bytes:
    sent = body.encode()
    fields = f"content-type: {kind}\r\ncontent-length: {len(sent)}\r\nconnection: close"
    return f"{head}\r\n{fields}\r\n\r\n".encode() + sent


def _stream(*chunks: str) -> bytes:
    return _answer("".join(f"data: {chunk}\n\n" for chunk in chunks), "text/event-stream")


def _whole(message: str, reason: str = "stop") -> bytes:
    choice = f'{{"index":0,"message":{message},"finish_reason":"{reason}"}}'
    return _answer(f'{{{ENVELOPE},"choices":[{choice}]}}')


@asynccontextmanager
async def _behind(answer: bytes) -> AsyncIterator[tuple[aiohttp.ClientSession, RunningGateway]]:
    """Serve a gateway before an upstream that always sends those bytes."""

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        await reader.readexactly(size)
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    setup = GatewaySetup(limits=Limits(tries_each=1))
    catalog = catalog_at(f"http://{host}:{port}/v1", deployment("p/m"))
    async with server, running_gateway(catalog, setup) as gateway, aiohttp.ClientSession() as http:
        yield http, gateway


@shapes
@pytest.mark.parametrize(
    "answer",
    [
        _whole(f'{{"role":"assistant","content":"Hello","more":{DEEP}}}'),
        _answer(f'{{"error":{{"message":{DEEP}}}}}'),
        _answer(DEEP),
    ],
    ids=["an answer", "an error", "nothing else"],
)
async def test_a_whole_answer_too_deep_to_send_on_is_a_bad_answer(
    shape: Spoken, answer: bytes
) -> None:
    """The client reads 502 in its own words, and the receipt says so."""
    async with _behind(answer) as (http, gateway):
        heard = await ask(http, gateway, shape, stream=False)
        assert (heard.status, gateway.receipt().http_status) == (502, 502)
    assert "deeper" in heard.error


@shapes
async def test_a_stream_that_gets_too_deep_ends_in_an_error_in_band(shape: Spoken) -> None:
    """What came before was said; the end is clean."""
    deep = HELLO.replace('"content"', f'"more":{DEEP},"content"')
    async with _behind(_stream(HELLO, deep, STOP, "[DONE]")) as (http, gateway):
        heard = await ask(http, gateway, shape, stream=True)
        assert gateway.receipt().status == "truncated"
    assert (heard.status, heard.text, heard.finish) == (200, "Hello", "")
    assert "deeper" in heard.error


@shapes
@pytest.mark.parametrize("stream", [False, True])
async def test_arguments_too_deep_to_be_an_object_stay_a_text(shape: Spoken, stream: bool) -> None:
    """Arguments are text inside of JSON, and some shapes send them as an object."""
    made = orjson.dumps(
        [
            {
                "index": 0,
                "id": "call_1",
                "type": "function",
                "function": {"name": "read_file", "arguments": f'{{"path":{DEEP}}}'},
            }
        ]
    ).decode()
    message = f'{{"role":"assistant","content":null,"tool_calls":{made}}}'
    called = HELLO.replace('{"content":"Hello"}', message)
    ended = STOP.replace('"stop"', '"tool_calls"')
    answer = _stream(called, ended, "[DONE]") if stream else _whole(message, "tool_calls")
    async with _behind(answer) as (http, gateway):
        heard = await ask(http, gateway, shape, stream=stream, tools=True)
        assert gateway.receipt().status == "ok"
    ((name, arguments),) = heard.calls
    assert (heard.status, name, DEEP in arguments) == (200, "read_file", True)


@shapes
@pytest.mark.parametrize("stream", [False, True])
async def test_headers_that_are_no_plain_text_are_not_passed_on(
    shape: Spoken, stream: bool
) -> None:
    """The refusal is, and so is the limit that can be read."""
    head = "HTTP/1.1 429 Slow\r\nx-ratelimit-reset: später €\r\nx-ratelimit-limit: 5"
    body = '{"error":{"message":"Slower.","type":"rate"}}'
    async with _behind(_answer(body, head=head)) as (http, gateway):
        heard = await ask(http, gateway, shape, stream=stream)
        assert gateway.receipt().http_status == 429
    assert (heard.status, heard.headers.get("x-ratelimit-limit")) == (429, "5")
    assert "x-ratelimit-reset" not in heard.headers
    assert "Slower." in heard.error


@shapes
async def test_calls_beyond_number_end_the_stream(shape: Spoken) -> None:
    """Each would be kept and looked through for every fragment that follows."""
    calls = [
        {"index": at, "id": f"call_{at}", "function": {"name": "read_file", "arguments": "{}"}}
        for at in range(2_000)
    ]
    chunks = [
        HELLO.replace('"content":"Hello"', f'"tool_calls":[{orjson.dumps(call).decode()}]')
        for call in calls
    ]
    async with _behind(_stream(*chunks, STOP, "[DONE]")) as (http, gateway):
        heard = await ask(http, gateway, shape, stream=True, tools=True)
        assert gateway.receipt().status == "truncated"
    assert "more than 512 tool calls" in heard.error


@shapes
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("levels", "status"), [(150, 200), (400, 400)])
async def test_a_request_is_as_deep_as_can_be_sent_on_or_refused(
    shape: Spoken, stream: bool, levels: int, status: int
) -> None:
    """Also where it is put into other words, kept, or compared with one that was kept."""
    deep: dict[str, JsonValue] = {}
    for _ in range(levels):
        deep = {"properties": deep}
    tools = {
        "chat": {"type": "function", "function": {"name": "f", "parameters": deep}},
        "messages": {"name": "f", "input_schema": deep},
        "responses": {"type": "function", "name": "f", "parameters": deep},
    }
    answer = _stream(HELLO, STOP, "[DONE]") if stream else _whole('{"content":"Hello"}')
    async with _behind(answer) as (http, gateway):
        more = {"tools": [tools[shape]]}
        headers = {"idempotency-key": "once"}
        heard = await ask(http, gateway, shape, stream=stream, more=more, headers=headers)
    assert (heard.status, heard.text) == (status, "Hello" if status == 200 else "")
