"""The scripted model server answers and fails as its script says."""

import asyncio
import json

import aiohttp
import pytest
from openai import AsyncOpenAI

from turnout.core.json import JsonObject
from turnout.testing.model_server import (
    Call,
    Fault,
    Refusal,
    ScriptedModelServer,
    Turn,
    refusing_base_url,
)

ASK: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
TOOL: JsonObject = {"type": "function", "function": {"name": "look", "parameters": {}}}


async def post(server: ScriptedModelServer, body: JsonObject) -> tuple[int, bytes]:
    """Return the status and body of one chat request."""
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{server.base_url}/chat/completions", json=body) as answer,
    ):
        return answer.status, await answer.read()


async def test_the_official_client_reads_a_whole_turn() -> None:
    """Text, calls, usage and finish reason arrive as scripted."""
    turn = Turn("Looking.", calls=(Call("look", {"path": "a"}),), reasoning="hm")
    async with (
        ScriptedModelServer([turn]) as server,
        AsyncOpenAI(api_key="k", base_url=server.base_url) as client,
    ):
        reply = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hi"}]
        )
    choice = reply.choices[0]
    assert (choice.message.content, choice.finish_reason) == ("Looking.", "tool_calls")
    assert choice.message.tool_calls is not None
    assert reply.usage is not None
    assert reply.usage.prompt_tokens == 100


async def test_the_official_client_reads_a_streamed_turn() -> None:
    """The pieces of a stream join to the scripted text and arguments."""
    turn = Turn("one two three four five", calls=(Call("look", {"path": "a/long/path.py"}),))
    async with (
        ScriptedModelServer([turn]) as server,
        AsyncOpenAI(api_key="k", base_url=server.base_url) as client,
    ):
        asked = client.chat.completions.stream(
            model="m", messages=[{"role": "user", "content": "hi"}]
        )
        async with asked as stream:
            final = await stream.get_final_completion()
    message = final.choices[0].message
    assert message.content == turn.text
    assert message.tool_calls is not None
    assert json.loads(message.tool_calls[0].function.arguments) == {"path": "a/long/path.py"}


async def test_a_script_that_ran_out_says_so() -> None:
    """A call beyond the script is a plain error, not a hang or a repeat."""
    async with ScriptedModelServer([Turn("one")]) as server:
        await post(server, ASK)
        status, body = await post(server, ASK)
    assert status == 400
    assert json.loads(body)["error"]["code"] == "script_exhausted"


async def test_each_model_follows_its_own_script() -> None:
    """A mapping serves its models and knows no other."""
    async with ScriptedModelServer({"a": [Turn("from a")], "b": [Turn("from b")]}) as server:
        _, body = await post(server, {**ASK, "model": "b"})
        status, _ = await post(server, {**ASK, "model": "c"})
    assert json.loads(body)["choices"][0]["message"]["content"] == "from b"
    assert status == 404


async def test_a_result_that_no_call_asked_for_is_refused_and_noted() -> None:
    """Every tool message answers exactly one open call."""
    stray = {"role": "tool", "tool_call_id": "x", "content": "?"}
    async with ScriptedModelServer([Turn("one")]) as server:
        status, _ = await post(server, {**ASK, "messages": [stray]})
        assert server.history_faults == ["message 0 answers 'x', which no open call has"]
    assert status == 400


async def test_a_call_without_its_result_is_refused_and_noted() -> None:
    """A history must answer each call before it goes on."""
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    history = [{"role": "assistant", "tool_calls": [call]}, {"role": "user", "content": "?"}]
    async with ScriptedModelServer([Turn("one")]) as server:
        status, _ = await post(server, {**ASK, "messages": history})
        assert server.history_faults == ["call 'c' has no result"]
    assert status == 400


async def test_probes_are_answered_beside_the_script() -> None:
    """A probe for tool support uses up no turn."""
    probe = {"type": "function", "function": {"name": "turnout_probe", "parameters": {}}}
    async with ScriptedModelServer([]) as server:
        status, body = await post(server, {**ASK, "tools": [probe]})
        assert (len(server.probes), server.requests) == (1, [])
    assert status == 200
    assert json.loads(body)["choices"][0]["finish_reason"] == "tool_calls"


async def test_a_wrong_key_is_refused() -> None:
    """A server with a key admits nobody without it."""
    async with ScriptedModelServer([Turn("x")], api_key="right") as server:
        status, _ = await post(server, ASK)
    assert status == 401


async def test_a_refusal_carries_its_headers() -> None:
    """Status, headers and body of a refusal are the script's."""
    refusal = Refusal(429, "slow down", "rate_limit_exceeded", {"Retry-After": "7"})
    async with (
        ScriptedModelServer([refusal]) as server,
        aiohttp.ClientSession() as session,
        session.post(f"{server.base_url}/chat/completions", json=ASK) as answer,
    ):
        assert answer.status == 429
        assert answer.headers["Retry-After"] == "7"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fault", ["reset", "reset_after_headers", "cut"])
async def test_a_broken_connection_reaches_the_client(fault: Fault, stream: bool) -> None:
    """Each connection fault is a client error, never a clean end."""
    turn = Turn("one two three four five six", fault=fault)
    async with ScriptedModelServer([turn]) as server:
        with pytest.raises(aiohttp.ClientError):
            await post(server, {**ASK, "stream": stream})


async def _never(answer: aiohttp.ClientResponse, raw: bytes) -> None:
    while raw := await answer.content.readany():
        assert b"[DONE]" not in raw


async def test_an_answer_may_be_whole_and_its_connection_stay_open() -> None:
    """Until the server ends."""
    body = {**ASK, "stream": True}
    async with (
        ScriptedModelServer([Turn("Hi.", fault="no_end")]) as server,
        aiohttp.ClientSession() as session,
        session.post(f"{server.base_url}/chat/completions", json=body) as answer,
    ):
        raw = b""
        while b'"finish_reason": "stop"' not in raw:
            raw += await answer.content.readany()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(_never(answer, raw), 0.2)
    assert b"[DONE]" not in raw


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_may_be_larger_than_anyone_reads(stream: bool) -> None:
    """More than 32 MiB."""
    async with ScriptedModelServer([Turn("Hi there, you.", fault="oversized")]) as server:
        _, raw = await post(server, {**ASK, "stream": stream})
    assert len(raw) > 32 * 2**20


async def test_a_stall_ends_with_the_server() -> None:
    """A stalled answer is silent, and never holds up the end of a test."""
    async with ScriptedModelServer([Turn(fault="stall")]) as server:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(post(server, ASK), 0.05)
        await asyncio.wait_for(server.requests[0].closed.wait(), 5)


async def test_a_dripped_stream_arrives_whole() -> None:
    """One byte a write changes nothing of what is read."""
    async with ScriptedModelServer([Turn("é🙂", fault="drip")]) as server:
        _, body = await post(server, {**ASK, "stream": True})
    assert "é🙂" in body.decode()
    assert body.endswith(b"data: [DONE]\n\n")


async def test_a_refusing_address_accepts_no_connection() -> None:
    """The address belongs to nobody while it is held."""
    with refusing_base_url() as url:
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientConnectorError):
                await session.get(f"{url}/models")
