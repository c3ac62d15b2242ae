"""Clients of the other shapes, served by an upstream that speaks the responses API."""

from dataclasses import replace
from typing import Any

import anthropic
import openai
import pytest
from tests.gateways import MODEL, served

from turnout.core.usage import Usage
from turnout.testing.gateway import RunningGateway
from turnout.testing.responses import ResponsesTurn, ScriptedResponsesServer, called, said, thought

pytestmark = pytest.mark.clients

USED = Usage(100, 20, cache_read_input_tokens=40)
TURN = ResponsesTurn(
    (
        thought("Hm."),
        said("Looking at both of them."),
        called("read_file", '{"path": "a.py"}', "call_1"),
        called("read_file", '{"path": "b.py"}', "call_2"),
    ),
    usage=USED,
)
SCHEMA: Any = {"type": "object", "properties": {"path": {"type": "string"}}}
CHAT_TOOLS: Any = [{"type": "function", "function": {"name": "read_file", "parameters": SCHEMA}}]
MESSAGES_TOOLS: Any = [{"name": "read_file", "input_schema": SCHEMA}]


def chat_client(gateway: RunningGateway) -> openai.AsyncOpenAI:
    """Return an unmodified client of chat completions."""
    return openai.AsyncOpenAI(api_key="k", base_url=gateway.base_url, max_retries=0)


def messages_client(gateway: RunningGateway) -> anthropic.AsyncAnthropic:
    """Return an unmodified client of messages."""
    base_url = gateway.base_url.removesuffix("/v1")
    return anthropic.AsyncAnthropic(api_key="k", base_url=base_url, max_retries=0)


async def test_a_chat_client_streams_thoughts_text_and_calls():
    """Each call at an index of its own, the usage in its last chunk."""
    async with (
        served(ScriptedResponsesServer([TURN])) as (server, gateway),
        chat_client(gateway) as client,
    ):
        stream = await client.chat.completions.create(
            model="auto",
            messages=[{"role": "user", "content": "Go"}],
            tools=CHAT_TOOLS,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    arguments = {0: "", 1: ""}
    for delta in deltas:
        for call in delta.tool_calls or ():
            arguments[call.index] += call.function.arguments or ""
    assert "".join(d.content or "" for d in deltas) == "Looking at both of them."
    assert arguments == {0: '{"path": "a.py"}', 1: '{"path": "b.py"}'}
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "tool_calls"
    assert chunks[-1].usage.prompt_tokens_details.cached_tokens == 40
    assert server.faults == []
    assert server.requests[0].body["store"] is False


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_messages_client_runs_a_tool_loop(streamed):
    """Two blocks, each with its own input; their results find their calls."""
    turns = [TURN, ResponsesTurn((said("Both read."),))]
    async with (
        served(ScriptedResponsesServer(turns)) as (server, gateway),
        messages_client(gateway) as client,
    ):

        async def ask(messages: Any) -> Any:
            sent = {"model": "auto", "max_tokens": 64, "messages": messages}
            if not streamed:
                return await client.messages.create(tools=MESSAGES_TOOLS, **sent)
            async with client.messages.stream(tools=MESSAGES_TOOLS, **sent) as stream:
                return await stream.get_final_message()

        messages: list[Any] = [{"role": "user", "content": "Go"}]
        first = await ask(messages)
        calls = [block for block in first.content if block.type == "tool_use"]
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": call.input["path"]}
            for call in calls
        ]
        messages += [
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": results},
        ]
        last = await ask(messages)
    assert first.stop_reason == "tool_use"
    assert [call.input for call in calls] == [{"path": "a.py"}, {"path": "b.py"}]
    assert first.usage.cache_read_input_tokens == 40
    assert last.content[0].text == "Both read."
    assert server.faults == []
    sent = [item["output"] for item in server.requests[1].items if "output" in item]
    assert sent == ["a.py", "b.py"]
    assert server.requests[1].body["max_output_tokens"] == 64


@pytest.mark.cases
@pytest.mark.parametrize("fault", ["bad_json", "html", "failed"])
async def test_an_answer_that_cannot_be_read_is_no_success_elsewhere(fault):
    """A status that says so, and nothing of the upstream's body in the words."""
    turns = [ResponsesTurn((said("secret-marker"),), fault=fault)] * 4
    async with (
        served(ScriptedResponsesServer(turns)) as (_, gateway),
        messages_client(gateway) as client,
    ):
        with pytest.raises(anthropic.APIStatusError) as caught:
            await client.messages.create(
                model="auto", max_tokens=9, messages=[{"role": "user", "content": "Hi"}]
            )
    assert caught.value.status_code == 502
    assert "secret-marker" not in str(caught.value.body)


@pytest.mark.cases
async def test_an_error_in_a_stream_is_an_error_to_a_chat_client():
    """Not an answer that merely ends."""
    turn = ResponsesTurn((said("Some words before it breaks."),), fault="failed")
    async with (
        served(ScriptedResponsesServer([turn])) as (_, gateway),
        chat_client(gateway) as client,
    ):
        stream = await client.chat.completions.create(
            model="auto", messages=[{"role": "user", "content": "Hi"}], stream=True
        )
        with pytest.raises(openai.APIError):
            async for _chunk in stream:
                pass


async def test_a_schema_asked_for_in_chat_is_asked_for_here():
    """`response_format` becomes `text.format`, effort becomes `reasoning.effort`."""
    wanted = {"name": "place", "strict": True, "schema": {"type": "object"}}
    async with (
        served(ScriptedResponsesServer([ResponsesTurn((said("{}"),))])) as (server, gateway),
        chat_client(gateway) as client,
    ):
        await client.chat.completions.create(
            model="auto",
            messages=[{"role": "system", "content": "Be."}, {"role": "user", "content": "Hi"}],
            response_format={"type": "json_schema", "json_schema": wanted},
            reasoning_effort="low",
            extra_body={"routing": {"optimize": "cost"}},
        )
    body = server.requests[0].body
    assert body["text"]["format"] == {"type": "json_schema", **wanted}
    assert body["reasoning"]["effort"] == "low"
    assert body["instructions"] == "Be."
    assert server.faults == []


async def test_encrypted_thoughts_come_back_for_a_client_that_has_no_place_for_them():
    """Kept by the calls that they led to, where the catalog says that the model wants them."""
    turns = [
        ResponsesTurn((thought("Hm.", "gAAA"), called("read_file", "{}", "call_1"))),
        ResponsesTurn((said("Read."),)),
    ]
    thinking = replace(MODEL, reasoning_back=True)
    async with (
        served(ScriptedResponsesServer(turns), thinking) as (server, gateway),
        chat_client(gateway) as client,
    ):
        messages: list[Any] = [{"role": "user", "content": "Go"}]
        first = await client.chat.completions.create(
            model="auto", messages=messages, tools=CHAT_TOOLS
        )
        messages += [
            first.choices[0].message,
            {"role": "tool", "tool_call_id": "call_1", "content": "x"},
        ]
        last = await client.chat.completions.create(
            model="auto", messages=messages, tools=CHAT_TOOLS
        )
    assert last.choices[0].message.content == "Read."
    assert server.faults == []
    sent = server.requests[1].items
    kinds = [item["type"] for item in sent]
    assert kinds == ["message", "reasoning", "function_call", "function_call_output"]
    assert sent[1]["encrypted_content"] == "gAAA"
