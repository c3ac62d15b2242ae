"""Unmodified client programs against the gateway: only base URL and key are changed."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import openai
import pytest

from turnout.core.money import Price
from turnout.core.policies import Policy, SessionCaps
from turnout.gateway.access import shared_key
from turnout.gateway.catalog import StatedQuality
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, RunningGateway, catalog_at, running_gateway
from turnout.testing.model_server import Call, Refusal, ScriptedModelServer, Turn

pytestmark = pytest.mark.clients

KEY = "test-key"
HELLO: Any = [{"role": "user", "content": "Hello"}]
TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "read_file",
            "description": "Return the text of a file.",
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}},
                "required": ["path"],
            },
        },
    }
]
PRICE = Price(input=1_000_000, output=2_000_000)
STRONG = replace(
    deployment("p/strong"),
    price=PRICE,
    quality={"coding": StatedQuality(0.8, "stated")},
    stated_ttft_ms=5_000,
    stated_tokens_per_second=15,
)
FAST = replace(
    deployment("p/fast"),
    price=PRICE,
    quality={"coding": StatedQuality(0.3, "stated")},
    stated_ttft_ms=80,
    stated_tokens_per_second=300,
)

Result = TypeVar("Result")


@dataclass
class TwoCalls:
    """What the two kinds of call of one run came to."""

    plan_by: str
    steps_by: list[str]
    answer: str


def plan_then_act(client: openai.OpenAI, session: str) -> TwoCalls:
    """Plan for quality, then act for latency until the model answers in words."""
    task = "tests/test_dates.py fails for an empty list. Find out why."
    routed = {"task": "coding", "session": session}
    plan: Any = client.chat.completions.create(
        model="auto",
        max_tokens=300,
        messages=[{"role": "user", "content": f"Three steps, please: {task}"}],
        extra_body={"routing": {**routed, "optimize": "quality"}},
    )
    messages: list[Any] = [
        {"role": "system", "content": "Read before you answer."},
        {"role": "user", "content": f"{task}\n\n{plan.choices[0].message.content}"},
    ]
    steps_by: list[str] = []
    for _ in range(6):
        step: Any = client.chat.completions.create(
            model="auto",
            max_tokens=400,
            messages=messages,
            tools=TOOLS,
            extra_body={
                "routing": {**routed, "optimize": "latency"},
                "extended_thinking": False,
            },
        )
        steps_by.append(step.model_extra["routing"]["model"])
        choice = step.choices[0]
        messages.append(choice.message)
        if choice.finish_reason != "tool_calls":
            break
        for call in choice.message.tool_calls:
            path = json.loads(call.function.arguments)["path"]
            text = f"# {path}\nfirst = rows[0]"
            messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
    return TwoCalls(
        plan_by=plan.model_extra["routing"]["model"],
        steps_by=steps_by,
        answer=messages[-1].content,
    )


async def _with_client(
    gateway: RunningGateway, program: Callable[[openai.OpenAI], Result], *, prefix: str = "/v1"
) -> Result:
    """Run a program of the blocking SDK beside the gateway, with retries as the SDK has them."""
    root = gateway.base_url.removesuffix("/v1")

    def run() -> Result:
        with openai.OpenAI(api_key=KEY, base_url=f"{root}{prefix}") as client:
            return program(client)

    return await asyncio.to_thread(run)


def _guarded(policy: Policy | None = None) -> GatewaySetup:
    return GatewaySetup(policy=policy or Policy(), authenticate=shared_key(KEY))


async def test_plan_and_tool_steps_go_to_different_models_and_the_loop_stays() -> None:
    """The plan on the strong one, every tool step on the fast one, four requests in one session."""
    scripts = {
        "strong": [Turn("1. Read. 2. Guard. 3. Test.")],
        "fast": [
            Turn(calls=(Call("read_file", {"path": "src/dates.py"}),)),
            Turn(
                calls=(
                    Call("read_file", {"path": "a.py"}),
                    Call("read_file", {"path": "b.py"}),
                )
            ),
            Turn("rows[0] fails on an empty list."),
        ],
    }
    async with (
        ScriptedModelServer(scripts) as server,
        running_gateway(catalog_at(server.base_url, STRONG, FAST), _guarded()) as gateway,
    ):
        done = await _with_client(
            gateway, lambda client: plan_then_act(client, "run-7"), prefix="/api/v1/inference"
        )
        receipts = await gateway.receipts.of_session("run-7", key="shared")
    assert done == TwoCalls("strong", ["fast"] * 3, "rows[0] fails on an empty list.")
    assert server.history_faults == []
    assert [receipt.model for receipt in receipts] == ["strong", "fast", "fast", "fast"]
    sticky = [receipt.routing.sticky for receipt in receipts if receipt.routing]
    assert sticky == [False, False, True, True]
    assert not any("extended_thinking" in request.body for request in server.requests)


async def test_the_loop_stays_even_where_the_other_model_becomes_the_better_choice() -> None:
    """An open call outweighs any evidence: the strong one began, so it goes on."""
    scripts = {
        "strong": [
            Turn(calls=(Call("read_file", {"path": "a.py"}),)),
            Turn("Done."),
        ],
        "fast": [Turn("never")],
    }

    def program(client: openai.OpenAI) -> list[str]:
        messages: list[Any] = [*HELLO]
        models = []
        for optimize in ("quality", "latency"):
            answer: Any = client.chat.completions.create(
                model="auto",
                messages=messages,
                tools=TOOLS,
                extra_body={"routing": {"optimize": optimize, "task": "coding"}},
            )
            message = answer.choices[0].message
            models.append(answer.model)
            messages.append(message)
            messages += [
                {"role": "tool", "tool_call_id": call.id, "content": "x"}
                for call in message.tool_calls or []
            ]
        return models

    async with (
        ScriptedModelServer(scripts) as server,
        running_gateway(catalog_at(server.base_url, STRONG, FAST), _guarded()) as gateway,
    ):
        assert await _with_client(gateway, program) == ["strong", "strong"]


@pytest.mark.cases
async def test_the_sdk_reads_a_stream_of_calls_with_usage() -> None:
    """Its accumulator needs an index on every fragment and one usage chunk."""
    turn = Turn(text="Reading.", calls=(Call("read_file", {"path": "a.py"}),), fault="no_index")

    def program(client: openai.OpenAI) -> Any:
        with client.chat.completions.stream(
            model="auto", messages=HELLO, tools=TOOLS, stream_options={"include_usage": True}
        ) as stream:
            for _ in stream:
                pass
            return stream.get_final_completion()

    async with (
        ScriptedModelServer([turn]) as server,
        running_gateway(catalog_at(server.base_url, FAST), _guarded()) as gateway,
    ):
        final = await _with_client(gateway, program)
    (choice,) = final.choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "Reading."
    assert json.loads(choice.message.tool_calls[0].function.arguments) == {"path": "a.py"}
    assert final.usage.total_tokens == 120
    assert final.id == gateway.receipt().request_id


async def test_the_sdk_raises_on_a_stream_that_is_cut() -> None:
    """Without an error event it would take the half for the whole."""

    def program(client: openai.OpenAI) -> str:
        said: list[str] = []
        stream: Any = client.chat.completions.create(model="auto", messages=HELLO, stream=True)
        with pytest.raises(openai.APIError, match="broke"):
            said.extend(chunk.choices[0].delta.content or "" for chunk in stream)
        return "".join(said)

    async with (
        ScriptedModelServer([Turn("one two three four five", fault="cut")]) as server,
        running_gateway(catalog_at(server.base_url, FAST), _guarded()) as gateway,
    ):
        said = await _with_client(gateway, program)
    assert said
    assert "one two three four five".startswith(said)
    assert gateway.receipt().status == "truncated"


@pytest.mark.cases
async def test_the_sdk_does_not_retry_at_the_request_cap() -> None:
    """One refusal, one request: a retry would only be counted again."""

    def program(client: openai.OpenAI) -> openai.RateLimitError:
        ask = partial(
            client.chat.completions.create,
            model="auto",
            messages=HELLO,
            extra_body={"routing": {"session": "s"}},
        )
        ask()
        with pytest.raises(openai.RateLimitError) as caught:
            ask()
        return caught.value

    policy = Policy(session=SessionCaps(max_requests=1))
    async with (
        ScriptedModelServer([Turn("Hi.")]) as server,
        running_gateway(catalog_at(server.base_url, FAST), _guarded(policy)) as gateway,
    ):
        error = await _with_client(gateway, program)
    assert error.code == "session_request_cap"
    assert [r.http_status for r in gateway.receipts.receipts.values()] == [200, 429]


async def test_the_sdk_sees_the_upstreams_complaint_as_its_own() -> None:
    """A 400 of the provider keeps its words and its class."""

    def program(client: openai.OpenAI) -> openai.BadRequestError:
        with pytest.raises(openai.BadRequestError) as caught:
            client.chat.completions.create(model="auto", messages=HELLO)
        return caught.value

    refusal = Refusal(400, "This model's maximum context length is 9.", "context_length_exceeded")
    async with (
        ScriptedModelServer([refusal]) as server,
        running_gateway(catalog_at(server.base_url, FAST), _guarded()) as gateway,
    ):
        error = await _with_client(gateway, program)
    assert error.code == "context_length_exceeded"
    assert "maximum context length is 9" in error.message


async def test_the_sdk_lists_models_and_is_told_of_a_wrong_key() -> None:
    """`auto` comes first."""

    def program(client: openai.OpenAI) -> list[str]:
        with pytest.raises(openai.AuthenticationError):
            client.with_options(api_key="wrong").models.list()
        assert client.models.retrieve("strong").id == "strong"
        with pytest.raises(openai.NotFoundError):
            client.models.retrieve("weak")
        return [model.id for model in client.models.list()]

    async with running_gateway(catalog_at("http://127.0.0.1:1/v1", STRONG, FAST), _guarded()) as g:
        assert await _with_client(g, program) == ["auto", "strong", "fast"]
