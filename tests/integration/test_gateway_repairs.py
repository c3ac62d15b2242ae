"""Tool calls that a server of the chat shape gets wrong are right for clients of every shape."""

from collections.abc import AsyncIterator
from dataclasses import replace

import aiohttp
import orjson
import pytest
from tests.integration.spoken import SHAPES, Spoken, ask

from turnout.core.json import JsonObject, JsonValue, as_object, as_objects
from turnout.testing.exchange import deployment
from turnout.testing.gateway import catalog_at, running_gateway
from turnout.testing.model_server import RecordedRequest, Refusal, ScriptedModelServer, Turn

pytestmark = pytest.mark.cases

M = deployment("p/m")
JSON = '{"name": "read_file", "arguments": {"path": "a.py"}}'
MADE: tuple[str, JsonObject] = ("read_file", {"path": "a.py"})
REQUIRED: dict[Spoken, JsonObject] = {
    "chat": {"tool_choice": "required"},
    "messages": {"tool_choice": {"type": "any"}},
    "responses": {"tool_choice": "required"},
}
NAMED: dict[Spoken, JsonObject] = {
    "chat": {"tool_choice": {"type": "function", "function": {"name": "read_file"}}},
    "messages": {"tool_choice": {"type": "tool", "name": "read_file"}},
    "responses": {"tool_choice": {"type": "function", "name": "read_file"}},
}


def _fragment(text: str, **more: JsonValue) -> JsonObject:
    return {**more, "function": {"arguments": text}}


def _opening(name: str, text: str = "", **more: JsonValue) -> JsonObject:
    return {**more, "type": "function", "function": {"name": name, "arguments": text}}


def _delta(*fragments: JsonObject, finish: str | None = None) -> JsonObject:
    delta: JsonObject = {"tool_calls": list(fragments)}
    return {"index": 0, "delta": delta, "finish_reason": finish}


FINISH: JsonObject = {"index": 0, "delta": {}, "finish_reason": "tool_calls"}
PIECES = ('{"pa', 'th": ', '"a.py"', "}")
BOTH = [MADE, ("read_file", {"path": "b.py"})]
STREAMS: dict[str, tuple[list[JsonObject], list[tuple[str, JsonObject]]]] = {
    "no index at all": (
        [_delta(_opening("read_file", id="a")), *(_delta(_fragment(p)) for p in PIECES), FINISH],
        [MADE],
    ),
    "an id in the first fragment alone": (
        [
            _delta(_opening("read_file", PIECES[0], id="a", index=0)),
            *(_delta(_fragment(p, index=0)) for p in PIECES[1:]),
            FINISH,
        ],
        [MADE],
    ),
    "the last fragment beside the finish": (
        [
            _delta(_opening("read_file", "".join(PIECES[:3]), id="a", index=0)),
            _delta(_fragment(PIECES[3], index=0), finish="tool_calls"),
        ],
        [MADE],
    ),
    "one id for two calls": (
        [
            _delta(
                _opening("read_file", '{"path": "a.py"}', id="a", index=0),
                _opening("read_file", '{"path": "b.py"}', id="a", index=1),
            ),
            FINISH,
        ],
        BOTH,
    ),
    "empty ids at index 0": (
        [
            _delta(_opening("read_file", '{"path": "a.py"}', id="", index=0)),
            _delta(_opening("read_file", '{"path": "b.py"}', id="", index=0)),
            FINISH,
        ],
        BOTH,
    ),
    "indices from 1": (
        [
            _delta(_opening("read_file", '{"path": "a.py"}', id="a", index=1)),
            _delta(_opening("read_file", '{"path": "b.py"}', id="b", index=2)),
            FINISH,
        ],
        BOTH,
    ),
    "calls that take turns": (
        [
            _delta(_opening("read_file", id="a", index=0), _opening("read_file", id="b", index=1)),
            _delta(_fragment('{"path":', index=1), _fragment('{"path":', index=0)),
            _delta(_fragment('"b.py"}', index=1), _fragment('"a.py"}', index=0)),
            FINISH,
        ],
        BOTH,
    ),
    "a finish that says stop": (
        [
            _delta(_opening("read_file", '{"path": "a.py"}', id="a", index=0)),
            {"index": 0, "delta": {}, "finish_reason": "stop"},
        ],
        [MADE],
    ),
    "a tool stop without a call": ([_delta(), FINISH], []),
}


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    """Yield a client for the gateway."""
    async with aiohttp.ClientSession() as session:
        yield session


def _by_schema(request: RecordedRequest) -> Turn:
    """Answer as a server that knows schemas and ignores tool choices."""
    form = as_object(request.body.get("response_format"))
    schema = as_object(as_object(form.get("json_schema")).get("schema"))
    if "tool_choice" in request.body or not schema:
        return Turn("Hello!")
    function = as_object(as_objects(request.body["tools"])[0]["function"])
    assert as_object(schema["properties"])["name"] == {"const": function["name"]}
    return Turn(JSON)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("choices", [REQUIRED, NAMED], ids=["required", "named"])
async def test_a_choice_that_is_not_enforced_is_emulated_by_a_schema(
    http: aiohttp.ClientSession, shape: Spoken, stream: bool, choices: dict[Spoken, JsonObject]
) -> None:
    """The server knows schemas; the client sees a call."""
    loose = replace(M, enforces_tool_choice=False)
    async with (
        ScriptedModelServer({"m": _by_schema}) as server,
        running_gateway(catalog_at(server.base_url, loose)) as gateway,
    ):
        heard = await ask(http, gateway, shape, stream=stream, tools=True, more=choices[shape])
    assert (heard.status, heard.text, heard.error) == (200, "", "")
    assert [(name, orjson.loads(text)) for name, text in heard.calls] == [MADE]
    assert heard.finish in {"tool_calls", "tool_use", "completed"}
    assert "calls read from the text" in gateway.receipt().repairs


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "said",
    [
        f"```json\n{JSON}\n```",
        f"<tool_call>{JSON}</tool_call>",
        "<function=read_file><parameter=path>a.py</parameter></function>",
        f"[TOOL_CALLS][{JSON}]",
        '[TOOL_CALLS]read_file[ARGS]{"path": "a.py"}',
    ],
)
async def test_calls_in_the_text_are_calls_where_the_catalog_says_so(
    http: aiohttp.ClientSession, shape: Spoken, stream: bool, said: str
) -> None:
    """In every way that servers leave them there; words beside them stay words."""
    textual = replace(M, calls_in_text=True)
    async with (
        ScriptedModelServer([Turn(f"I look.\n{said}")]) as server,
        running_gateway(catalog_at(server.base_url, textual)) as gateway,
    ):
        heard = await ask(http, gateway, shape, stream=stream, tools=True)
    assert [(name, orjson.loads(text)) for name, text in heard.calls] == [MADE]
    assert heard.text == "I look."
    assert gateway.receipt().tools_called == ("read_file",)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "said", [f"Such a call is `<tool_call>{JSON}</tool_call>`.", JSON.replace("read_file", "rm")]
)
async def test_a_quotation_and_an_undeclared_tool_stay_text(
    http: aiohttp.ClientSession, shape: Spoken, stream: bool, said: str
) -> None:
    """Nothing is called that nobody declared."""
    textual = replace(M, calls_in_text=True)
    async with (
        ScriptedModelServer([Turn(said)]) as server,
        running_gateway(catalog_at(server.base_url, textual)) as gateway,
    ):
        heard = await ask(http, gateway, shape, stream=stream, tools=True)
    assert (heard.calls, heard.text) == ((), said)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("case", STREAMS)
async def test_fragments_of_calls_come_together(
    http: aiohttp.ClientSession, shape: Spoken, case: str
) -> None:
    """However the upstream numbers, names and cuts them."""
    choices, expected = STREAMS[case]
    head: JsonObject = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunks = [orjson.dumps({**head, "choices": [choice]}) for choice in choices]
    raw = b"".join(b"data: " + chunk + b"\n\n" for chunk in [*chunks, b"[DONE]"])
    answer = Refusal(200, raw=raw, headers={"Content-Type": "text/event-stream"})
    async with (
        ScriptedModelServer([answer]) as server,
        running_gateway(catalog_at(server.base_url, M)) as gateway,
    ):
        heard = await ask(http, gateway, shape, stream=True, tools=True)
    assert [(name, orjson.loads(text)) for name, text in heard.calls] == expected
    assert (heard.finish in {"tool_calls", "tool_use"}) == (bool(expected) and shape != "responses")
    calls = gateway.receipt().tools_called
    assert calls == tuple(name for name, _ in expected)
