"""Anthropic's SDK, unmodified, against the gateway: chat upstreams and upstreams of its own."""

import json
from dataclasses import replace
from typing import Any

import anthropic
import pydantic
import pytest
from tests.messages_client import (
    HELLO,
    KEY,
    TOOLS,
    Kind,
    behind,
    guarded,
    with_anthropic,
)

from turnout.core.policies import Policy, SessionCaps, ToolRule
from turnout.core.usage import Usage
from turnout.testing.exchange import deployment
from turnout.testing.gateway import catalog_at, running_gateway
from turnout.testing.messages import ScriptedMessagesServer
from turnout.testing.model_server import Call, Turn

pytestmark = pytest.mark.clients

both = pytest.mark.parametrize("kind", ["chat", "messages"])
prefixes = pytest.mark.parametrize("prefix", ["", "/api/v1/inference"])
SDK_VERSION = anthropic.Anthropic(api_key=KEY).default_headers["anthropic-version"]
USAGE = Usage(1_000, 20, cache_read_input_tokens=900)


@both
@prefixes
async def test_create_returns_a_message(kind: Kind, prefix: str) -> None:
    """With its counts in the terms of this API, under our id."""

    def program(client: anthropic.Anthropic) -> anthropic.types.Message:
        return client.messages.create(
            model="auto", max_tokens=64, messages=HELLO, system="Be kind."
        )

    async with behind(kind, [Turn("Hi there.", usage=USAGE)]) as served:
        message = await with_anthropic(served.gateway, program, prefix=prefix)
    receipt = served.gateway.receipt()
    assert [block.text for block in message.content if block.type == "text"] == ["Hi there."]
    assert (message.role, message.model, message.stop_reason) == ("assistant", "m", "end_turn")
    assert (message.id, message._request_id) == (receipt.request_id, receipt.request_id)
    assert (message.usage.input_tokens, message.usage.output_tokens) == (100, 20)
    assert message.usage.cache_read_input_tokens == 900
    assert receipt.usage == USAGE
    assert served.faults == []
    assert message.model_extra
    assert message.model_extra["routing"]["deployment"] == "p/m"


@both
async def test_stream_yields_text_and_the_final_message(kind: Kind) -> None:
    """The SDK's own accumulator puts it together."""

    def program(client: anthropic.Anthropic) -> tuple[list[str], Any, list[Any]]:
        events: list[Any] = []
        said: list[str] = []
        with client.messages.stream(model="auto", max_tokens=64, messages=HELLO) as stream:
            for event in stream:
                events.append(event)
                if event.type == "text":
                    said.append(event.text)
            return said, stream.get_final_message(), events

    async with behind(kind, [Turn("One two three four five.", usage=USAGE)]) as served:
        said, final, events = await with_anthropic(served.gateway, program)
    assert "".join(said) == "One two three four five."
    assert len(said) > 1
    assert final.content[0].text == "One two three four five."
    assert final.stop_reason == "end_turn"
    assert (final.usage.input_tokens, final.usage.output_tokens) == (100, 20)
    start = next(event for event in events if event.type == "message_start")
    assert start.message.usage.input_tokens > 0
    assert start.message.model == "m"
    assert served.gateway.receipt().usage == USAGE


def _loop(client: anthropic.Anthropic, *, streamed: bool, **more: Any) -> list[Any]:
    """Return the answers of an agent that reads files until it has seen enough."""
    messages: list[Any] = [{"role": "user", "content": "Why does the test fail?"}]
    answers: list[Any] = []
    for _ in range(6):
        asked: dict[str, Any] = {
            "model": "auto",
            "max_tokens": 4_096,
            "messages": messages,
            "tools": TOOLS,
            **more,
        }
        if streamed:
            with client.messages.stream(**asked) as stream:
                answer: Any = stream.get_final_message()
        else:
            answer = client.messages.create(**asked)
        answers.append(answer)
        messages.append({"role": "assistant", "content": answer.content})
        if answer.stop_reason != "tool_use":
            break
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": f"# {block.input}"}
            for block in answer.content
            if block.type == "tool_use"
        ]
        messages.append({"role": "user", "content": results})
    return answers


@both
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_tool_loop_goes_round(kind: Kind, streamed: bool) -> None:
    """Text beside calls, parallel calls, one without arguments, results, the answer."""
    turns = [
        Turn("Reading.", calls=(Call("read_file", {"path": 'a "b"\n.py'}),)),
        Turn(calls=(Call("read_file", {"path": "ä.py"}), Call("list_files", {}))),
        Turn("rows[0] fails on an empty list."),
    ]
    async with behind(kind, turns) as served:
        answers = await with_anthropic(
            served.gateway, lambda client: _loop(client, streamed=streamed)
        )
    calls = [b for answer in answers for b in answer.content if b.type == "tool_use"]
    assert [(c.name, c.input) for c in calls] == [
        ("read_file", {"path": 'a "b"\n.py'}),
        ("read_file", {"path": "ä.py"}),
        ("list_files", {}),
    ]
    assert answers[-1].content[0].text == "rows[0] fails on an empty list."
    assert served.faults == []
    receipts = served.receipts
    assert [r.routing.sticky for r in receipts if r.routing] == [False, True, True]
    assert {r.shape for r in receipts} == {"messages"}
    assert receipts[1].tools_called == ("read_file", "list_files")


@both
@pytest.mark.parametrize("streamed", [False, True])
async def test_thoughts_go_to_the_client_and_back(kind: Kind, streamed: bool) -> None:
    """A chat model's as unsigned blocks, which no upstream of this shape would see again."""
    turns = [
        Turn(reasoning="Think, then read.", calls=(Call("read_file", {"path": "a.py"}),)),
        Turn("Done.", reasoning="Short."),
    ]

    def program(client: anthropic.Anthropic) -> list[Any]:
        budget = {"type": "enabled", "budget_tokens": 1_024}
        return _loop(client, streamed=streamed, thinking=budget)

    async with behind(kind, turns) as served:
        answers = await with_anthropic(served.gateway, program)
    first = answers[0].content[0]
    assert (first.type, first.thinking) == ("thinking", "Think, then read.")
    assert first.signature == ("sig0" if kind == "messages" else "")
    assert served.faults == []
    if kind == "messages":
        messages: Any = served.bodies[1]["messages"]
        assert messages[1]["content"][0]["signature"] == "sig0"


@both
async def test_a_model_that_thinks_unasked_does_not_hide_its_answer(kind: Kind) -> None:
    """Programs read `content[0].text`; an upstream of this shape is taken at its word."""

    def program(client: anthropic.Anthropic) -> Any:
        return client.messages.create(model="auto", max_tokens=64, messages=HELLO).content

    async with behind(kind, [Turn("Hi.", reasoning="Hm.")]) as served:
        content = await with_anthropic(served.gateway, program)
    assert content[-1].text == "Hi."
    assert len(content) == (1 if kind == "chat" else 2)


@both
async def test_images_and_errors_reach_the_model_in_results(kind: Kind) -> None:
    """A screenshot as the result of a call, a call that failed."""
    image = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    messages: list[Any] = [
        {"role": "user", "content": "Look."},
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "toolu_1", "name": "list_files", "input": {}},
                {"type": "tool_use", "id": "toolu_2", "name": "list_files", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [
                        {"type": "text", "text": "A picture"},
                        {"type": "image", "source": image},
                    ],
                },
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_2",
                    "content": "boom",
                    "is_error": True,
                },
                {"type": "text", "text": "<system-reminder>Be brief.</system-reminder>"},
            ],
        },
    ]

    def program(client: anthropic.Anthropic) -> Any:
        return client.messages.create(
            model="auto", max_tokens=64, messages=messages, tools=TOOLS
        ).content

    seeing = replace(deployment("p/m"), modalities=frozenset({"image"}))
    async with behind(kind, [Turn("A cat.")], model=seeing) as served:
        await with_anthropic(served.gateway, program)
    sent = json.dumps(served.bodies[0])
    assert served.faults == []
    for words in ("A picture", "aGk=", "boom", "Be brief."):
        assert words in sent


@both
async def test_structured_output_is_parsed_by_the_sdk(kind: Kind) -> None:
    """The schema reaches an upstream of either kind."""
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }

    def program(client: anthropic.Anthropic) -> Any:
        return client.messages.create(
            model="auto",
            max_tokens=64,
            messages=HELLO,
            output_config={"format": {"type": "json_schema", "schema": schema}},
        )

    async with behind(kind, [Turn('{"n": 7}')]) as served:
        message = await with_anthropic(served.gateway, program)
    assert json.loads(message.content[0].text) == {"n": 7}
    body: Any = served.bodies[0]
    found = (
        body["output_config"]["format"]["schema"]
        if kind == "messages"
        else body["response_format"]["json_schema"]["schema"]
    )
    assert found == schema


class Count(pydantic.BaseModel):
    """What the model is to fill in."""

    n: int


@both
async def test_the_sdks_own_helpers_work(kind: Kind) -> None:
    """`parse` into a model of the program's, and the runner that calls its functions."""

    def program(client: anthropic.Anthropic) -> tuple[Any, str]:
        parsed = client.messages.parse(
            model="auto", max_tokens=64, messages=HELLO, output_format=Count
        ).parsed_output

        @anthropic.beta_tool
        def read_file(path: str) -> str:
            """Read a file.

            Args:
                path: Where it is.

            """
            return f"# {path}"

        runner = client.beta.messages.tool_runner(
            model="auto", max_tokens=64, messages=HELLO, tools=[read_file], betas=["some-beta"]
        )
        return parsed, runner.until_done().content[-1].text

    turns = [
        Turn('{"n": 7}'),
        Turn(calls=(Call("read_file", {"path": "a.py"}),)),
        Turn("It is empty."),
    ]
    async with behind(kind, turns) as served:
        parsed, said = await with_anthropic(served.gateway, program)
    assert parsed == Count(n=7)
    assert said == "It is empty."
    assert "# a.py" in str(served.bodies[2])
    assert served.faults == []


@both
async def test_a_choice_of_tool_and_its_limits_are_said(kind: Kind) -> None:
    """One call at a time, of this tool, with these words to stop at."""

    def program(client: anthropic.Anthropic) -> None:
        client.messages.create(
            model="auto",
            max_tokens=64,
            messages=HELLO,
            tools=TOOLS,
            tool_choice={"type": "tool", "name": "read_file", "disable_parallel_tool_use": True},
            stop_sequences=["END"],
            metadata={"user_id": "user_1_session_2"},
        )

    turn = Turn(calls=(Call("read_file", {"path": "a.py"}),))
    async with behind(kind, [turn]) as served:
        await with_anthropic(served.gateway, program)
    body: Any = served.bodies[0]
    if kind == "messages":
        assert body["tool_choice"]["disable_parallel_tool_use"] is True
    else:
        assert body["tool_choice"]["function"]["name"] == "read_file"
        assert body["parallel_tool_calls"] is False
        assert body["stop"] == ["END"]
    assert served.gateway.receipt().session == "user_1_session_2"


async def test_counting_asks_an_upstream_that_counts() -> None:
    """And leaves no mark on its health or on any cap."""

    def program(client: anthropic.Anthropic) -> set[int]:
        return {
            client.messages.count_tokens(
                model="m", messages=HELLO, tools=TOOLS, system="Be kind."
            ).input_tokens
            for _ in range(3)
        }

    policy = Policy(session=SessionCaps(max_requests=1))
    async with ScriptedMessagesServer(counts=1_234) as server:
        catalog = catalog_at(server.base_url, deployment("p/m"), shape="messages")
        async with running_gateway(catalog, guarded(policy)) as gateway:
            assert await with_anthropic(gateway, program) == {1_234}
    asked = server.counted[0]
    assert set(asked.body) == {"model", "messages", "tools", "system"}
    assert asked.headers["anthropic-version"] == SDK_VERSION
    assert gateway.receipt().operation == "count_tokens"


@pytest.mark.cases
@both
async def test_counting_estimates_where_nobody_counts(kind: Kind) -> None:
    """An upstream without the route stays in use: its health is another matter."""

    def program(client: anthropic.Anthropic) -> tuple[int, str]:
        counted = client.messages.count_tokens(model="auto", messages=HELLO).input_tokens
        message: Any = client.messages.create(model="auto", max_tokens=9, messages=HELLO)
        return counted, message.content[0].text

    async with behind(kind, [Turn("Hi.")]) as served:
        counted, said = await with_anthropic(served.gateway, program)
    assert 5 < counted < 100
    assert said == "Hi."


async def test_models_are_listed_and_shown_as_the_sdk_reads_them() -> None:
    """In pages, `auto` first; an OpenAI client sees its own form of the same list."""

    def program(client: anthropic.Anthropic) -> tuple[list[str], list[str], str]:
        listed = [model.id for model in client.models.list(limit=1000)]
        paged = [model.id for model in client.models.list(limit=2)]
        with pytest.raises(anthropic.NotFoundError):
            client.models.retrieve("none")
        return listed, paged, client.models.retrieve("c").display_name

    catalog = catalog_at("http://127.0.0.1:1/v1", *(deployment(f"p/{n}") for n in "abcd"))
    async with running_gateway(catalog, guarded()) as gateway:
        listed, paged, name = await with_anthropic(gateway, program)
    assert listed == ["auto", "a", "b", "c", "d"]
    assert paged == listed
    assert name == "c"


@both
async def test_errors_are_the_sdks_own(kind: Kind) -> None:
    """A wrong key, a wrong field, an unknown model, a tool outside the list."""

    def program(client: anthropic.Anthropic) -> list[tuple[str, str | None]]:
        found: list[tuple[str, str | None]] = []

        def fails(key: str = KEY, **fields: Any) -> None:
            asked: dict[str, Any] = {"model": "auto", "max_tokens": 9, "messages": HELLO, **fields}
            with pytest.raises(anthropic.APIStatusError) as caught:
                client.with_options(api_key=key).messages.create(**asked)
            found.append((type(caught.value).__name__, caught.value.error_code))
            assert caught.value.request_id
            assert caught.value.type

        fails("wrong")
        fails(messages=[])
        fails(model="nonesuch")
        fails(tools=[{"name": "rm", "input_schema": {"type": "object"}}])
        return found

    policy = Policy(tools=ToolRule("enforce", ("read_file",)))
    async with behind(kind, [], guarded(policy)) as served:
        found = await with_anthropic(served.gateway, program)
    assert found == [
        ("AuthenticationError", "invalid_api_key"),
        ("BadRequestError", "invalid_request"),
        ("NotFoundError", "model_not_found"),
        ("PermissionDeniedError", "tool_not_allowed"),
    ]
    assert served.bodies == []
    assert KEY not in str(served.receipts)


@both
async def test_the_sdk_does_not_retry_at_the_request_cap(kind: Kind) -> None:
    """One refusal, one request."""

    def program(client: anthropic.Anthropic) -> anthropic.RateLimitError:
        def ask() -> None:
            client.messages.create(
                model="auto",
                max_tokens=9,
                messages=HELLO,
                extra_body={"routing": {"session": "s"}},
            )

        ask()
        with pytest.raises(anthropic.RateLimitError) as caught:
            ask()
        return caught.value

    policy = Policy(session=SessionCaps(max_requests=1))
    async with behind(kind, [Turn("Hi.")], guarded(policy)) as served:
        error = await with_anthropic(served.gateway, program)
    assert error.error_code == "session_request_cap"
    assert [r.http_status for r in served.receipts] == [200, 429]


@both
async def test_the_async_client_streams_too(kind: Kind) -> None:
    """`create(stream=True)`, its events one by one."""
    async with behind(kind, [Turn("Hi there, all.")]) as served:
        root = served.gateway.base_url.removesuffix("/v1")
        async with anthropic.AsyncAnthropic(auth_token=KEY, api_key=None, base_url=root) as client:
            stream = await client.messages.create(
                model="auto", max_tokens=9, messages=HELLO, stream=True
            )
            kinds = [event.type async for event in stream]
    assert kinds[0] == "message_start"
    assert kinds[-2:] == ["message_delta", "message_stop"]
    assert kinds.count("content_block_start") == kinds.count("content_block_stop") == 1
