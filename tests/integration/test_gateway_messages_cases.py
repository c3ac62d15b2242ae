"""Public faults of other gateways, as inputs: the messages shape at either end."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import aiohttp
import anthropic
import openai
import pytest
from tests.messages_client import HELLO, KEY, TOOLS, Kind, behind, guarded, with_anthropic

from turnout.core.govern.keys import KeyLimits
from turnout.core.money import Price
from turnout.core.usage import Usage
from turnout.gateway.exchange import Caller
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, RunningGateway, catalog_at, running_gateway
from turnout.testing.messages import (
    MessagesRefusal,
    MessagesTurn,
    ScriptedMessagesServer,
    text,
    thinking,
    tool_use,
)
from turnout.testing.model_server import Call, Fault, ScriptedModelServer, Turn

pytestmark = pytest.mark.cases

both = pytest.mark.parametrize("kind", ["chat", "messages"])
streams = pytest.mark.parametrize("stream", [False, True])
TWO_CALLS = (Call("read_file", {"path": "a"}), Call("read_file", {"path": "b"}))
CHAT_TOOLS: list[Any] = [
    {"type": "function", "function": {"name": t["name"], "parameters": t["input_schema"]}}
    for t in TOOLS
]

Result = TypeVar("Result")


def _ask(client: anthropic.Anthropic, *, stream: bool, **fields: Any) -> Any:
    asked: dict[str, Any] = {
        "model": "auto",
        "max_tokens": 4_096,
        "messages": HELLO,
        "tools": TOOLS,
        **fields,
    }
    if not stream:
        return client.messages.create(**asked)
    with client.messages.stream(**asked) as events:
        return events.get_final_message()


async def _with_openai(
    gateway: RunningGateway, program: Callable[[openai.OpenAI], Result]
) -> Result:
    def run() -> Result:
        with openai.OpenAI(api_key=KEY, base_url=gateway.base_url) as client:
            return program(client)

    return await asyncio.to_thread(run)


@streams
@pytest.mark.parametrize("fault", [None, "no_index", "zero_index"])
async def test_calls_without_an_index_are_two_blocks(fault: Fault | None, stream: bool) -> None:
    """Whatever the chat server's habit, nothing is merged and nothing dropped."""
    turn = Turn(calls=TWO_CALLS, fault=fault)
    async with behind("chat", [turn]) as served:
        message = await with_anthropic(served.gateway, lambda c: _ask(c, stream=stream))
    assert [block.input for block in message.content] == [{"path": "a"}, {"path": "b"}]
    assert message.stop_reason == "tool_use"
    assert len({block.id for block in message.content}) == 2


@streams
async def test_a_call_in_the_text_becomes_a_block(stream: bool) -> None:
    """Where the catalog says that the deployment does that; the receipt says so too."""
    turn = Turn("Reading.", calls=TWO_CALLS[:1], fault="call_in_text")
    model = replace(deployment("p/m"), calls_in_text=True)
    async with behind("chat", [turn], model=model) as served:
        message = await with_anthropic(served.gateway, lambda c: _ask(c, stream=stream))
        receipt = served.gateway.receipt()
    assert [block.type for block in message.content] == ["text", "tool_use"]
    assert message.content[0].text.strip() == "Reading."
    assert receipt.repairs


@streams
async def test_parallel_blocks_are_parallel_calls_to_a_chat_client(stream: bool) -> None:
    """Two calls, indices 0 and 1, each valid JSON; thoughts and counts go along."""
    turn = MessagesTurn(
        (
            thinking("Both.", "sig"),
            text("Reading."),
            tool_use("read_file", {"path": "a"}, "toolu_1"),
            tool_use("list_files", {}, "toolu_2"),
        ),
        {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 20},
    )

    def program(client: openai.OpenAI) -> Any:
        asked: dict[str, Any] = {"model": "auto", "messages": HELLO, "tools": CHAT_TOOLS}
        if not stream:
            return client.chat.completions.create(**asked)
        options = {"include_usage": True}
        with client.chat.completions.stream(**asked, stream_options=options) as events:
            for _ in events:
                pass
            return events.get_final_completion()

    async with ScriptedMessagesServer([turn]) as server:
        catalog = catalog_at(server.base_url, deployment("p/m"), shape="messages")
        async with running_gateway(catalog, guarded()) as gateway:
            answer = await _with_openai(gateway, program)
    (choice,) = answer.choices
    calls = [(c.id, json.loads(c.function.arguments)) for c in choice.message.tool_calls]
    assert calls == [("toolu_1", {"path": "a"}), ("toolu_2", {})]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "Reading."
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (100, 20)
    assert answer.usage.prompt_tokens_details.cached_tokens == 90
    assert server.faults == []
    assert server.requests[0].body["max_tokens"] == 4_096


async def test_a_chat_loop_goes_round_at_an_upstream_of_this_shape() -> None:
    """Results of parallel calls come as one message; ids survive; instructions move."""
    turns = [
        MessagesTurn(
            (
                tool_use("read_file", {"path": "a"}, "toolu_1"),
                tool_use("read_file", {"path": "b"}, "toolu_2"),
            )
        ),
        MessagesTurn((text("Done."),)),
    ]

    def program(client: openai.OpenAI) -> Any:
        messages: list[Any] = [{"role": "system", "content": "Be kind."}, *HELLO]
        for _ in range(2):
            answer: Any = client.chat.completions.create(
                model="auto", messages=messages, tools=CHAT_TOOLS, temperature=1.5
            )
            message = answer.choices[0].message
            messages.append(message)
            messages += [
                {"role": "tool", "tool_call_id": call.id, "content": "x"}
                for call in message.tool_calls or []
            ]
        return message.content

    async with ScriptedMessagesServer(turns) as server:
        catalog = catalog_at(server.base_url, deployment("p/m"), shape="messages")
        async with running_gateway(catalog, guarded()) as gateway:
            assert await _with_openai(gateway, program) == "Done."
            routing = gateway.receipt().routing
    assert server.faults == []
    body: Any = server.requests[1].body
    assert body["system"] == "Be kind."
    assert [m["role"] for m in body["messages"]] == ["user", "assistant", "user"]
    assert routing is not None
    assert routing.sticky


async def test_thoughts_come_back_to_the_maker_though_the_client_drops_them() -> None:
    """With their signature: the API wants the thought before the call that it led to."""
    turns = [
        MessagesTurn((thinking("Read.", "sig"), tool_use("read_file", {"path": "a"}, "toolu_1"))),
        MessagesTurn((text("Done."),)),
    ]
    model = replace(
        deployment("p/m"),
        reasoning_back=True,
        thinking_on={"thinking": {"type": "enabled", "budget_tokens": 2_000}},
    )

    def program(client: openai.OpenAI) -> Any:
        messages: list[Any] = [*HELLO]
        for _ in range(2):
            answer: Any = client.chat.completions.create(
                model="auto",
                messages=messages,
                tools=CHAT_TOOLS,
                extra_body={"extended_thinking": True},
            )
            calls = answer.choices[0].message.tool_calls or []
            made = [call.model_dump() for call in calls]
            messages.append({"role": "assistant", "tool_calls": made})
            messages += [
                {"role": "tool", "tool_call_id": call.id, "content": "x"} for call in calls
            ]
        return answer.choices[0].message.content

    async with ScriptedMessagesServer(turns) as server:
        catalog = catalog_at(server.base_url, model, shape="messages")
        async with running_gateway(catalog, guarded()) as gateway:
            assert await _with_openai(gateway, program) == "Done."
    assert server.faults == []
    body: Any = server.requests[1].body
    assert body["messages"][1]["content"][0] == thinking("Read.", "sig")
    assert body["thinking"]["budget_tokens"] == 2_000


@both
async def test_receipts_are_equal_however_it_was_asked(kind: Kind) -> None:
    """In every shape, streamed or not: the same counts and the same cost."""
    usage = Usage(1_000, 20, cache_read_input_tokens=500, cache_creation_input_tokens=100)
    model = replace(deployment("p/m"), price=Price(1_000_000, 5_000_000))
    if kind == "chat":
        usage = replace(usage, cache_creation_input_tokens=0)

    def chat(client: openai.OpenAI) -> None:
        client.chat.completions.create(model="auto", messages=HELLO)
        for _ in client.chat.completions.create(model="auto", messages=HELLO, stream=True):
            pass
        client.responses.create(model="auto", input="Hello")
        for _ in client.responses.create(model="auto", input="Hello", stream=True):
            pass

    def messages(client: anthropic.Anthropic) -> None:
        _ask(client, stream=False)
        _ask(client, stream=True)

    async with behind(kind, [Turn("Hi there.", usage=usage)] * 6, model=model) as served:
        await _with_openai(served.gateway, chat)
        await with_anthropic(served.gateway, messages)
    assert len(served.receipts) == 6
    assert {receipt.usage for receipt in served.receipts} == {usage}
    assert len({receipt.cost_micros for receipt in served.receipts}) == 1
    assert served.receipts[0].cost_micros


async def test_a_body_that_is_no_answer_is_never_a_success() -> None:
    """502, without what the upstream sent."""
    page = MessagesTurn((text("secret of the upstream"),), fault="bad_json")
    async with ScriptedMessagesServer([page] * 4) as server:
        catalog = catalog_at(server.base_url, deployment("p/m"), shape="messages")
        async with running_gateway(catalog, guarded()) as gateway:

            def program(client: anthropic.Anthropic) -> anthropic.APIStatusError:
                with pytest.raises(anthropic.APIStatusError) as caught:
                    _ask(client.with_options(max_retries=0), stream=False)
                return caught.value

            error = await with_anthropic(gateway, program)
    assert error.status_code == 502
    assert "secret" not in str(error.body)


async def test_a_prompt_that_a_filter_refused_is_not_taken_elsewhere() -> None:
    """The policy may say so; by default the client hears of it."""
    refusal = MessagesRefusal(400, "invalid_request_error", "Output blocked by content filtering")

    def program(client: anthropic.Anthropic) -> anthropic.BadRequestError:
        with pytest.raises(anthropic.BadRequestError) as caught:
            _ask(client, stream=True)
        return caught.value

    async with ScriptedMessagesServer(lambda _: refusal) as server:
        models = (deployment("p/a"), deployment("q/b"))
        catalog = catalog_at(server.base_url, *models, shape="messages")
        async with running_gateway(catalog, guarded()) as gateway:
            error = await with_anthropic(gateway, program)
    assert error.api_message == "Output blocked by content filtering"
    assert len(server.requests) == 1


async def test_a_client_that_goes_away_ends_the_upstreams_work() -> None:
    """Within a second, streamed or not; what was used is charged as an estimate."""
    for stream in (True, False):
        said = (text("word " * 400),)
        slow = MessagesTurn(said, pause=0.05) if stream else MessagesTurn(said, fault="stall")
        async with ScriptedMessagesServer([slow]) as server:
            catalog = catalog_at(server.base_url, deployment("p/m"), shape="messages")
            async with running_gateway(catalog, guarded()) as gateway:
                await _leave_early(gateway, stream=stream)
                async with asyncio.timeout(1):
                    await server.requests[0].closed.wait()
                await gateway.engine.close()
                receipt = gateway.receipt()
        assert receipt.status == "cancelled"
        if stream:
            assert receipt.usage.estimated
            assert receipt.usage.output_tokens > 0


async def _leave_early(gateway: RunningGateway, *, stream: bool) -> None:
    body = {"model": "auto", "max_tokens": 9, "messages": HELLO, "stream": stream}
    headers = {"x-api-key": KEY}
    timeout = aiohttp.ClientTimeout(total=None if stream else 0.5)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        try:
            async with session.post(
                f"{gateway.base_url}/messages", json=body, headers=headers
            ) as answer:
                async for line in answer.content:
                    if b"text_delta" in line:
                        return
        except TimeoutError:
            return


async def test_slots_are_given_back_however_a_request_ends() -> None:
    """Ten in a row under a key that may have one: answered, refused, left."""
    setup = GatewaySetup(authenticate=lambda _: Caller("k", limits=KeyLimits(concurrency=1)))
    slow = MessagesTurn((text("word " * 400),), pause=0.02)
    script = [slow, MessagesTurn((text("Hi."),)), MessagesRefusal(400)] * 4
    async with ScriptedMessagesServer(script) as server:
        catalog = catalog_at(server.base_url, deployment("p/m"), shape="messages")
        async with running_gateway(catalog, setup) as gateway:
            for number in range(10):
                if number % 3 == 0:
                    await _leave_early(gateway, stream=True)
                    async with asyncio.timeout(2):
                        await server.requests[number].closed.wait()
                    await gateway.engine.close()
                    continue
                body = {"model": "auto", "max_tokens": 9, "messages": HELLO}
                async with (
                    aiohttp.ClientSession() as session,
                    session.post(f"{gateway.base_url}/messages", json=body) as answer,
                ):
                    assert answer.status == (200 if number % 3 == 1 else 400)


async def test_an_open_call_is_not_taken_to_another_model() -> None:
    """Its provider is down: an error, or the same model elsewhere, never another."""
    call = MessagesTurn((tool_use("read_file", {"path": "a"}, "toolu_1"),))
    down = MessagesRefusal(500)

    def program(client: anthropic.Anthropic) -> int:
        client = client.with_options(max_retries=0)
        first = client.messages.create(model="strong", max_tokens=64, messages=HELLO, tools=TOOLS)
        result = {"type": "tool_result", "tool_use_id": first.content[0].id, "content": "x"}
        history: list[Any] = [
            *HELLO,
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": [result]},
        ]
        with pytest.raises(anthropic.APIStatusError) as caught:
            client.messages.create(model="auto", max_tokens=64, messages=history, tools=TOOLS)
        return caught.value.status_code

    async with (
        ScriptedMessagesServer([call, down, down, down]) as strong,
        ScriptedModelServer([Turn("never")]) as other,
    ):
        one = catalog_at(strong.base_url, deployment("a/strong"), shape="messages")
        two = catalog_at(other.base_url, deployment("b/other"))
        catalog = replace(
            one,
            providers={**one.providers, **two.providers},
            deployments=(*one.deployments, *two.deployments),
        )
        async with running_gateway(catalog, guarded()) as gateway:
            assert await with_anthropic(gateway, program) == 502
    assert other.requests == []


async def test_a_chat_models_thoughts_are_not_shown_to_another_maker() -> None:
    """A client that changes models keeps the blocks; their new reader could not verify them."""
    fast = Turn(reasoning="Hm.", text="Hi.")

    def program(client: anthropic.Anthropic) -> None:
        asked: dict[str, Any] = {"max_tokens": 2_000, "thinking": {"type": "adaptive"}}
        first = client.messages.create(model="fast", messages=HELLO, **asked)
        assert first.content[0].type == "thinking"
        history: list[Any] = [*HELLO, {"role": "assistant", "content": first.content}, *HELLO]
        client.messages.create(model="strong", messages=history, **asked)

    async with (
        ScriptedMessagesServer([MessagesTurn((text("Hello."),))]) as strong,
        ScriptedModelServer([fast]) as other,
    ):
        one = catalog_at(strong.base_url, deployment("a/strong"), shape="messages")
        two = catalog_at(other.base_url, deployment("b/fast"))
        catalog = replace(
            one,
            providers={**one.providers, **two.providers},
            deployments=(*one.deployments, *two.deployments),
        )
        async with running_gateway(catalog, guarded()) as gateway:
            await with_anthropic(gateway, program)
    assert strong.faults == []
    body: Any = strong.requests[0].body
    assert "Hm." not in str(body["messages"])
