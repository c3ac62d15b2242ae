"""Unmodified clients of the responses API against the gateway: only address and key are changed."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import aiohttp
import openai
import pytest
from pydantic import BaseModel
from tests.gateways import served

from turnout.core.receipts import Receipt
from turnout.gateway.exchange import Caller
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, RunningGateway, catalog_at, running_gateway
from turnout.testing.model_server import Call, ScriptedModelServer, Turn
from turnout.testing.responses import ResponsesTurn, ScriptedResponsesServer, called, said, thought

pytestmark = pytest.mark.clients

TOOLS: Any = [
    {
        "type": "function",
        "name": "read_file",
        "description": "Return the text of a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
        "strict": False,
    }
]

Result = TypeVar("Result")


class Weather(BaseModel):
    """What a structured answer is parsed into."""

    city: str
    degrees: int


def client_of(gateway: RunningGateway, key: str = "k") -> openai.OpenAI:
    """Return an unmodified client that does not retry."""
    return openai.OpenAI(api_key=key, base_url=gateway.base_url, max_retries=0)


def receipts(gateway: RunningGateway) -> list[Receipt]:
    """Return the receipts, oldest first."""
    return list(gateway.books.receipts.receipts.values())


async def using(gateway: RunningGateway, work: Callable[[openai.OpenAI], Result]) -> Result:
    """Return what a program does with the client, in a thread of its own."""

    def run() -> Result:
        with client_of(gateway) as client:
            return work(client)

    return await asyncio.to_thread(run)


async def test_a_program_asks_and_reads_the_answer():
    """Text, usage, status and our routing, on a model that speaks another shape."""
    async with served(ScriptedModelServer([Turn("Hello there.")])) as (server, gateway):
        answer = await using(
            gateway,
            lambda c: c.responses.create(model="auto", input="Hi", instructions="Be kind."),
        )
        assert answer.output_text == "Hello there."
        assert answer.status == "completed"
        assert answer.usage is not None
        assert answer.usage.input_tokens_details.cache_write_tokens == 0
        assert answer.usage.total_tokens == 120
        assert answer.id == gateway.receipt().request_id
        assert gateway.receipt().shape == "responses"
    roles = [message["role"] for message in server.requests[0].messages]
    assert roles == ["system", "user"]


async def test_a_program_streams():
    """The SDK's own accumulation comes to the same response."""

    def work(client: openai.OpenAI) -> Any:
        with client.responses.stream(model="auto", input="Hi") as stream:
            text = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
            return text, stream.get_final_response()

    async with served(ScriptedModelServer([Turn("Hello there, friend.", reasoning="Hm.")])) as (
        _server,
        gateway,
    ):
        text, final = await using(gateway, work)
    assert text == final.output_text == "Hello there, friend."
    assert final.usage.total_tokens == 120
    assert [item.type for item in final.output] == ["reasoning", "message"]
    assert final.output[0].summary[0].text == "Hm."


async def test_a_program_parses_a_structured_answer():
    """`text.format` reaches a chat model as its JSON schema."""
    wanted = '{"city": "Pune", "degrees": 31}'
    async with served(ScriptedModelServer([Turn(wanted)])) as (server, gateway):
        answer = await using(
            gateway,
            lambda c: c.responses.parse(model="auto", input="Weather?", text_format=Weather),
        )
    assert answer.output_parsed == Weather(city="Pune", degrees=31)
    asked = server.requests[0].body["response_format"]
    assert asked["json_schema"]["name"] == "Weather"


def tool_loop(client: openai.OpenAI, **fields: Any) -> Any:
    """Run the loop of the API's own guide: call, run, send the outputs, read the answer."""
    items: list[Any] = [{"role": "user", "content": "What is in a.py?"}]
    first = client.responses.create(model="auto", input=items, tools=TOOLS, **fields)
    items += first.output
    for item in first.output:
        if item.type == "function_call":
            output = f"content of {json.loads(item.arguments)['path']}"
            items.append(
                {"type": "function_call_output", "call_id": item.call_id, "output": output}
            )
    return first, client.responses.create(model="auto", input=items, tools=TOOLS, **fields)


async def test_a_program_runs_a_tool_loop():
    """Calls side by side; the results reach the model that made the calls."""
    calls = (Call("read_file", {"path": "a.py"}), Call("read_file", {"path": "b.py"}))
    script = [Turn("Reading.", calls=calls, reasoning="Look."), Turn("Two files.")]
    async with served(ScriptedModelServer(script)) as (server, gateway):
        first, last = await using(gateway, tool_loop)
        assert receipts(gateway)[1].decision.sticky
    assert [item.type for item in first.output] == [
        "reasoning",
        "message",
        "function_call",
        "function_call",
    ]
    assert last.output_text == "Two files."
    assert server.history_faults == []
    sent = server.requests[1].messages
    assert [m["role"] for m in sent] == ["user", "assistant", "tool", "tool"]
    assert len(sent[1]["tool_calls"]) == 2


def stored_loop(client: openai.OpenAI) -> Any:
    """Run the same loop, the conversation kept by the gateway."""
    first = client.responses.create(model="auto", input="What is in a.py?", tools=TOOLS)
    outputs: Any = [
        {"type": "function_call_output", "call_id": item.call_id, "output": "x = 1"}
        for item in first.output
        if item.type == "function_call"
    ]
    second = client.responses.create(
        model="auto", input=outputs, tools=TOOLS, previous_response_id=first.id
    )
    third = client.responses.create(
        model="auto", input="Thanks.", previous_response_id=second.id, instructions="Be brief."
    )
    return first, second, third


async def test_a_program_goes_on_from_a_stored_response():
    """The whole conversation reaches the model, which made its calls."""
    script = [Turn(calls=(Call("read_file", {"path": "a.py"}),)), Turn("One."), Turn("Welcome.")]
    async with served(ScriptedModelServer(script)) as (server, gateway):
        _, second, third = await using(gateway, stored_loop)
        assert receipts(gateway)[1].decision.sticky
        assert not receipts(gateway)[2].decision.sticky
    assert second.previous_response_id
    assert third.output_text == "Welcome."
    assert [m["role"] for m in server.requests[1].messages] == ["user", "assistant", "tool"]
    assert [m["role"] for m in server.requests[2].messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert server.history_faults == []


@pytest.mark.cases
async def test_a_stored_response_goes_back_to_its_owner():
    """With open calls, to the deployment that made them, whatever is first now."""
    one, two = deployment("p/one"), deployment("p/two")
    script = {
        "one": [Turn(calls=(Call("read_file", {"path": "a"}),)), Turn("Done.")],
        "two": [Turn("Not mine.")],
    }
    async with served(ScriptedModelServer(script), one, two) as (_, gateway):

        def work(client: openai.OpenAI) -> Any:
            first = client.responses.create(model="one", input="Go", tools=TOOLS)
            result: Any = [
                {
                    "type": "function_call_output",
                    "call_id": first.output[0].call_id,
                    "output": "x",
                }
            ]
            return client.responses.create(
                model="auto",
                input=result,
                previous_response_id=first.id,
                extra_body={"routing": {"session": "another"}},
            )

        answer = await using(gateway, work)
    assert answer.output_text == "Done."


async def test_stored_responses_are_read_back_and_forgotten():
    """As the API's own routes do it; what was forgotten is not there any more."""
    async with served(ScriptedModelServer([Turn("One."), Turn("Two.")])) as (_server, gateway):

        def work(client: openai.OpenAI) -> Any:
            made = client.responses.create(model="auto", input="Hi", metadata={"a": "b"})
            read = client.responses.retrieve(made.id)
            items = client.responses.input_items.list(made.id).data
            client.responses.delete(made.id)
            with pytest.raises(openai.NotFoundError):
                client.responses.retrieve(made.id)
            with pytest.raises(openai.NotFoundError) as caught:
                client.responses.create(model="auto", input="x", previous_response_id=made.id)
            return made, read, items, caught.value

        made, read, items, refused = await using(gateway, work)
    assert read.output == made.output
    assert read.metadata == {"a": "b"}
    assert read.usage == made.usage
    assert items[0].content[0].text == "Hi"
    assert refused.code == "previous_response_not_found"


async def test_a_response_of_another_key_is_not_there():
    """Neither to read nor to go on from."""
    names = {"Bearer one": "one", "Bearer two": "two"}
    async with served(ScriptedModelServer([Turn("One.")]), setup=with_keys(names)) as (_, gateway):

        def work() -> Any:
            with client_of(gateway, "one") as mine, client_of(gateway, "two") as yours:
                made = mine.responses.create(model="auto", input="Hi")
                for attempt in (
                    lambda: yours.responses.retrieve(made.id),
                    lambda: yours.responses.delete(made.id),
                    lambda: yours.responses.create(
                        model="auto", input="x", previous_response_id=made.id
                    ),
                ):
                    with pytest.raises(openai.NotFoundError):
                        attempt()
                return mine.responses.retrieve(made.id)

        assert (await asyncio.to_thread(work)).output_text == "One."


async def test_what_is_not_to_be_stored_is_not():
    """`store: false` keeps nothing."""
    async with served(ScriptedModelServer([Turn("One.")])) as (_server, gateway):
        made = await using(
            gateway, lambda c: c.responses.create(model="auto", input="Hi", store=False)
        )
        assert gateway.books.responses.kept == {}
        with pytest.raises(openai.NotFoundError):
            await using(gateway, lambda c: c.responses.retrieve(made.id))


def with_keys(names: dict[str, str]) -> Any:
    """Return a setup that knows callers by their authorization header."""

    def authenticate(headers: Any) -> Caller:
        return Caller(names[headers["authorization"]])

    return GatewaySetup(authenticate=authenticate)


NATIVE = ResponsesTurn((thought("Hm.", "gAAA"), said("Hello there, friend.")))


async def test_the_same_shape_on_both_sides_passes_untouched():
    """Unknown fields both ways; ids, usage and details as the upstream sent them."""
    async with served(ScriptedResponsesServer([NATIVE])) as (server, gateway):
        answer = await using(
            gateway,
            lambda c: c.responses.create(
                model="auto", input="Hi", extra_body={"novelty": 1, "routing": {"task": "chat"}}
            ),
        )
        assert answer.id == gateway.receipt().request_id
    assert server.requests[0].body == {"input": "Hi", "model": "m", "novelty": 1}
    assert answer.model_extra["novelty"] == "kept"
    assert answer.model_extra["routing"]["deployment"] == "p/m"
    assert answer.usage.output_tokens_details.reasoning_tokens == 7
    assert [item.id for item in answer.output] == ["rs_up1x0", "msg_up1x1"]


async def test_the_same_shape_streams_on_both_sides():
    """Renumbered, under our id, otherwise as it came."""

    def work(client: openai.OpenAI) -> Any:
        with client.responses.stream(model="auto", input="Hi") as stream:
            events = list(stream)
            return events, stream.get_final_response()

    async with served(ScriptedResponsesServer([NATIVE])) as (_server, gateway):
        events, final = await using(gateway, work)
        assert final.id == gateway.receipt().request_id
        assert gateway.receipt().usage.output_tokens == 20
    assert [e.sequence_number for e in events] == list(range(len(events)))
    assert final.output_text == "Hello there, friend."
    assert final.usage.output_tokens_details.reasoning_tokens == 7


@pytest.mark.parametrize("stream", [False, True])
async def test_a_loop_on_an_upstream_of_the_shape_gives_back_its_thoughts(stream):
    """Encrypted content comes back as it was; the stored response is resolved here."""
    script = [
        ResponsesTurn((thought("Hm.", "gAAA"), called("read_file", '{"path":"a"}', "call_1"))),
        ResponsesTurn((said("Done."),)),
    ]
    async with served(ScriptedResponsesServer(script)) as (server, gateway):

        def ask(client: openai.OpenAI, **fields: Any) -> Any:
            if not stream:
                return client.responses.create(model="auto", tools=TOOLS, **fields)
            with client.responses.stream(model="auto", tools=TOOLS, **fields) as streamed:
                return streamed.get_final_response()

        def work(client: openai.OpenAI) -> str:
            made = ask(client, input="Go")
            result = {"type": "function_call_output", "call_id": "call_1", "output": "x"}
            return ask(client, input=[result], previous_response_id=made.id).output_text

        assert await using(gateway, work) == "Done."
    assert server.faults == []
    kinds = [item.get("type") for item in server.requests[1].items]
    assert kinds == ["message", "reasoning", "function_call", "function_call_output"]
    assert server.requests[1].items[1]["encrypted_content"] == "gAAA"


async def test_thoughts_stay_behind_when_the_model_changes():
    """The next model gets the conversation without what only the first can read."""
    async with (
        ScriptedResponsesServer([NATIVE]) as first,
        ScriptedResponsesServer([ResponsesTurn((said("Me."),))]) as second,
    ):
        one = catalog_at(first.base_url, deployment("p/one"), shape="responses")
        two = catalog_at(second.base_url, deployment("q/two"), shape="responses")
        both = replace(
            one,
            providers={**one.providers, **two.providers},
            deployments=(*one.deployments, *two.deployments),
        )
        async with running_gateway(both) as gateway:

            def work(client: openai.OpenAI) -> str:
                made = client.responses.create(model="one", input="Hi")
                return client.responses.create(
                    model="two", input="Who?", previous_response_id=made.id
                ).output_text

            assert await using(gateway, work) == "Me."
    assert second.faults == []
    assert [item.get("type") for item in second.requests[0].items] == ["message"] * 3


async def test_a_chat_client_is_served_by_an_upstream_of_the_shape():
    """Its loop, its thoughts, its usage: translated both ways."""
    script = [
        ResponsesTurn((thought("Hm."), called("read_file", '{"path":"a"}', "call_1"))),
        ResponsesTurn((said("Done."),), incomplete="max_output_tokens"),
    ]
    tools: Any = [{"type": "function", "function": {"name": "read_file", "parameters": {}}}]
    async with served(ScriptedResponsesServer(script)) as (server, gateway):

        def work(client: openai.OpenAI) -> Any:
            messages: list[Any] = [{"role": "user", "content": "Go"}]
            first = client.chat.completions.create(
                model="auto", messages=messages, tools=tools
            ).choices[0]
            messages += [
                first.message,
                {"role": "tool", "tool_call_id": "call_1", "content": "x"},
            ]
            last = client.chat.completions.create(
                model="auto", messages=messages, tools=tools, max_tokens=16
            )
            return first, last

        first, last = await using(gateway, work)
    assert first.finish_reason == "tool_calls"
    assert first.message.tool_calls[0].function.arguments == '{"path":"a"}'
    assert (last.choices[0].message.content, last.choices[0].finish_reason) == ("Done.", "length")
    assert last.usage.completion_tokens == 20
    assert server.faults == []
    assert server.requests[1].body["max_output_tokens"] == 16


async def test_the_prefix_of_the_guide_serves_the_shape():
    """The routes stand under `/api/v1/inference`, too."""
    async with served(ScriptedModelServer([Turn("Hi.")])) as (_server, gateway):
        base = gateway.base_url.removesuffix("/v1") + "/api/v1/inference/responses"
        async with aiohttp.ClientSession() as client:
            async with client.post(base, json={"model": "auto", "input": "Hi"}) as answered:
                answer = await answered.json()
            async with client.get(f"{base}/{answer['id']}") as found:
                read = await found.json()
    assert read["output"] == answer["output"]
