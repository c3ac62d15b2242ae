"""What a model thought goes back to it with its calls, whatever the client kept."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import aiohttp
import orjson
import pytest

from turnout.core.json import JsonObject
from turnout.core.policies import PinnedFallback, Policy
from turnout.gateway.catalog import Deployment
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, RunningGateway, catalog_at, running_gateway
from turnout.testing.model_server import (
    Answer,
    Call,
    RecordedRequest,
    Refusal,
    ScriptedModelServer,
    Turn,
)

pytestmark = pytest.mark.cases

THINKS = replace(deployment("p/thinks"), reasoning_back=True)
PLAIN = deployment("p/plain")
CALLS = Turn(calls=(Call("look", {"path": "a"}),), reasoning="I had better look.")
TOOL: JsonObject = {"name": "look", "parameters": {"type": "object"}}


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    """Yield a client for the gateway."""
    async with aiohttp.ClientSession() as session:
        yield session


def _insists(request: RecordedRequest) -> Answer:
    """Call a tool first; refuse a history in which a call has lost its thought."""
    made = [m for m in request.messages if m.get("tool_calls")]
    if any("reasoning_content" not in message for message in made):
        return Refusal(400, "The `reasoning_content` must be passed back.")
    return Turn("Done.") if made else CALLS


async def _post(
    http: aiohttp.ClientSession, gateway: RunningGateway, path: str, body: JsonObject
) -> Any:
    async with http.post(f"{gateway.base_url}{path}", json=body) as answer:
        raw = await answer.read()
        assert answer.status == 200, raw
    if body.get("stream"):
        return [
            orjson.loads(line.removeprefix(b"data: "))
            for line in raw.splitlines()
            if line.startswith(b"data: {")
        ]
    return orjson.loads(raw)


def _chat(*messages: JsonObject, **more: Any) -> JsonObject:
    tools = [{"type": "function", "function": TOOL}]
    said = [{"role": "user", "content": "Hi"}, *messages]
    return {"model": "auto", "messages": said, "tools": tools, **more}


def _loop(call_id: str, **kept: str) -> Sequence[JsonObject]:
    function = {"name": "look", "arguments": '{"path": "a"}'}
    call = {"id": call_id, "type": "function", "function": function}
    return (
        {"role": "assistant", "content": None, "tool_calls": [call], **kept},
        {"role": "tool", "tool_call_id": call_id, "content": "text"},
    )


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_chat_client_may_drop_the_thoughts(
    http: aiohttp.ClientSession, stream: bool
) -> None:
    """With a session and without."""
    async with (
        ScriptedModelServer({"thinks": _insists}) as server,
        running_gateway(catalog_at(server.base_url, THINKS)) as gateway,
    ):
        for more in ({}, {"routing": {"session": "s"}}):
            first = await _post(http, gateway, "/chat/completions", _chat(stream=stream, **more))
            (call_id,) = _call_ids(first)
            body = _chat(*_loop(call_id), **more)
            last = await _post(http, gateway, "/chat/completions", body)
            assert last["choices"][0]["message"]["content"] == "Done."
            told = server.requests[-1].messages[1]
            assert told["reasoning_content"] == "I had better look."


def _call_ids(answer: Any) -> list[str]:
    if isinstance(answer, list):
        deltas = [c["delta"] for chunk in answer for c in chunk["choices"]]
        fragments = [call for delta in deltas for call in delta.get("tool_calls", ())]
        return [call["id"] for call in fragments if call.get("id")]
    return [call["id"] for call in answer["choices"][0]["message"]["tool_calls"]]


async def test_a_messages_client_needs_no_thinking_blocks(http: aiohttp.ClientSession) -> None:
    """The thought is restored in the shape of the upstream."""
    tool = {"name": "look", "input_schema": {"type": "object"}}
    base: JsonObject = {"model": "auto", "max_tokens": 50, "tools": [tool]}
    asked: JsonObject = {"role": "user", "content": "Hi"}
    async with (
        ScriptedModelServer({"thinks": _insists}) as server,
        running_gateway(catalog_at(server.base_url, THINKS)) as gateway,
    ):
        first = await _post(http, gateway, "/messages", {**base, "messages": [asked]})
        (call,) = [block for block in first["content"] if block["type"] == "tool_use"]
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": "text"}
        said = [
            asked,
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ]
        last = await _post(http, gateway, "/messages", {**base, "messages": said})
        assert last["content"][-1]["text"] == "Done."
        assert server.requests[-1].messages[1]["reasoning_content"] == "I had better look."


async def test_a_responses_client_needs_no_reasoning_items(http: aiohttp.ClientSession) -> None:
    """Nor does it where it sends the whole conversation itself."""
    base: JsonObject = {"model": "auto", "tools": [{"type": "function", **TOOL}], "store": False}
    asked: JsonObject = {"role": "user", "content": "Hi"}
    async with (
        ScriptedModelServer({"thinks": _insists}) as server,
        running_gateway(catalog_at(server.base_url, THINKS)) as gateway,
    ):
        first = await _post(http, gateway, "/responses", {**base, "input": [asked]})
        (call,) = [item for item in first["output"] if item["type"] == "function_call"]
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": "text"}
        body = {**base, "input": [asked, call, result]}
        last = await _post(http, gateway, "/responses", body)
        assert last["output"][-1]["content"][0]["text"] == "Done."
        assert server.requests[-1].messages[1]["reasoning_content"] == "I had better look."


@pytest.mark.parametrize(
    "other", [PLAIN, replace(PLAIN, reasoning_back=True)], ids=["plain", "too"]
)
async def test_another_model_never_reads_them(
    http: aiohttp.ClientSession, other: Deployment
) -> None:
    """Not even where the client sends them and names that model itself."""
    script = {"thinks": _insists, "plain": lambda _: Turn("Done.")}
    setup = GatewaySetup(Policy(pinned=PinnedFallback("none")))
    async with (
        ScriptedModelServer(script) as server,
        running_gateway(catalog_at(server.base_url, THINKS, other), setup) as gateway,
    ):
        body = _chat(model="thinks")
        (call_id,) = _call_ids(await _post(http, gateway, "/chat/completions", body))
        for kept in ({}, {"reasoning_content": "I had better look."}):
            said = [*_loop(call_id, **kept), {"role": "assistant", "content": "So."}]
            asked = {"role": "user", "content": "And now?"}
            body = _chat(*said, asked, model="plain")
            await _post(http, gateway, "/chat/completions", body)
            assert "better look" not in str(server.requests[-1].body)
