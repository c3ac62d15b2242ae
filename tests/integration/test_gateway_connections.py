"""Tools of a real MCP server, run by the gateway for unmodified clients of every shape."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import anthropic
import openai
import pytest

from turnout.core.clock import SystemClock
from turnout.core.govern.connections import Connection
from turnout.core.money import Price
from turnout.core.policies import Policy, ToolRule
from turnout.core.receipts import Receipt
from turnout.core.usage import Usage
from turnout.mcp.connections import McpConnections
from turnout.testing.connections.server import ToolServer, running_tool_server
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, RunningGateway, catalog_at, running_gateway
from turnout.testing.model_server import Call, ScriptedModelServer, Turn

pytestmark = pytest.mark.clients

TOKEN = "s3cret-token"
MODEL = replace(deployment("p/m"), price=Price(input=1_000_000, output=2_000_000))
MCP: Any = {"type": "mcp", "mcp": {"server": "notes"}}
RESPONSES_MCP: Any = {"type": "mcp", "server_label": "notes", "require_approval": "never"}
PARAMETERS: Any = {"type": "object", "properties": {"path": {"type": "string"}}}
OWN: Any = {"type": "function", "function": {"name": "read_file", "parameters": PARAMETERS}}
OWN_RESPONSES: Any = {"type": "function", "name": "read_file", "parameters": PARAMETERS}
OWN_MESSAGES: Any = {"name": "read_file", "input_schema": PARAMETERS}
ASK: Any = [{"role": "user", "content": "What is on my list?"}]
READ = Call("mcp__notes__read_note", {"name": "todo"})
ANSWER = Turn("You are to buy milk.")


def client_of(gateway: RunningGateway) -> openai.AsyncOpenAI:
    """Return a client of chat and responses."""
    return openai.AsyncOpenAI(base_url=gateway.base_url, api_key="k", max_retries=0)


@dataclass
class House:
    """All that takes part."""

    gateway: RunningGateway
    models: ScriptedModelServer
    tools: ToolServer
    openai: openai.AsyncOpenAI

    @property
    def receipts(self) -> list[Receipt]:
        """What was written down."""
        return list(self.gateway.receipts.receipts.values())

    @property
    def anthropic(self) -> anthropic.AsyncAnthropic:
        """A client of messages."""
        base = self.gateway.base_url.removesuffix("/v1")
        return anthropic.AsyncAnthropic(base_url=base, api_key="k", max_retries=0)

    async def chat(self, **more: Any) -> Any:
        """Ask for a chat completion."""
        asked: Any = {"model": "auto", "messages": ASK, "tools": [MCP], **more}
        return await self.openai.chat.completions.create(**asked)

    async def respond(self, **more: Any) -> Any:
        """Ask for a response."""
        asked: Any = {"model": "auto", "input": "What?", "tools": [RESPONSES_MCP], **more}
        return await self.openai.responses.create(**asked)


@asynccontextmanager
async def house(
    script: Sequence[Turn] | Callable[..., Turn], *, rule: ToolRule | None = None, **changed: Any
) -> AsyncIterator[House]:
    """Open a gateway between a scripted model and a real tool server."""
    async with (
        ScriptedModelServer(script) as models,
        running_tool_server(ToolServer(token=TOKEN)) as tools,
    ):
        held = Connection(
            "notes",
            url=tools.url,
            headers={"authorization": f"Bearer {TOKEN}"},
            secrets=(TOKEN,),
            **{"timeout": 5.0, **changed},
        )
        async with McpConnections({"notes": held}, SystemClock()) as connections:
            setup = GatewaySetup(policy=Policy(tools=rule or ToolRule()), connections=connections)
            catalog = catalog_at(models.base_url, MODEL)
            async with running_gateway(catalog, setup) as gateway, client_of(gateway) as client:
                yield House(gateway, models, tools, client)
        assert models.history_faults == []


async def test_a_chat_client_gets_the_answer_and_sees_nothing_of_the_calls() -> None:
    """Two calls to the model, one to the tool, one completion, one receipt with all of it."""
    async with house([Turn(calls=(READ,)), ANSWER]) as all_of:
        completion = await all_of.chat()
        receipt = all_of.gateway.receipt()
        first, second = all_of.models.requests
    message = completion.choices[0].message
    assert (message.content, message.tool_calls) == ("You are to buy milk.", None)
    assert completion.choices[0].finish_reason == "stop"
    assert all_of.tools.calls == [("read_note", {"name": "todo"})]
    assert "mcp__notes__read_note" in first.tool_names
    assert first.tool_names == second.tool_names
    assert second.messages[-1]["content"] == "buy milk"
    (call,) = receipt.connection_calls
    assert (call.connection, call.tool, call.error) == ("notes", "read_note", None)
    assert receipt.tools_declared == ("mcp:notes/*",)
    assert receipt.tools_called == ("mcp:notes/read_note",)
    assert len(all_of.receipts) == 1


async def test_usage_and_cost_of_all_rounds_are_summed_on_the_one_receipt() -> None:
    """As the client reads them, too."""
    turns = [
        replace(Turn(calls=(READ,)), usage=Usage(100, 10)),
        replace(Turn(calls=(READ,)), usage=Usage(200, 20)),
        replace(ANSWER, usage=Usage(300, 30)),
    ]
    async with house(turns) as all_of:
        completion = await all_of.chat()
        receipt = all_of.gateway.receipt()
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (600, 60)
    assert (receipt.usage.input_tokens, receipt.usage.output_tokens) == (600, 60)
    assert receipt.cost_micros == 720
    assert completion.model_extra["routing"]["cost_micros"] == 720
    assert len(receipt.attempts) == 3


async def test_a_streamed_chat_shows_the_text_of_every_round_and_no_call() -> None:
    """Text comes as it is said; the finish is that of the last round."""
    async with house([Turn("Let me look.", calls=(READ,)), ANSWER]) as all_of:
        stream = await all_of.chat(stream=True, stream_options={"include_usage": True})
        chunks = [chunk async for chunk in stream]
        receipt = all_of.gateway.receipt()
    choices = [choice for chunk in chunks for choice in chunk.choices]
    text = "".join(choice.delta.content or "" for choice in choices)
    assert text == "Let me look.\n\nYou are to buy milk."
    assert all(choice.delta.tool_calls is None for choice in choices)
    assert [c.finish_reason for c in choices if c.finish_reason] == ["stop"]
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[-1].usage.prompt_tokens == 200
    assert receipt.ttft_ms is not None
    assert receipt.status == "ok"


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_turn_with_calls_for_both_goes_on_after_the_client_did_its_own(
    streamed: bool,
) -> None:
    """The client never sees our call; the model finds both results in the next request."""
    own = Call("read_file", {"path": "a"})
    script = [
        Turn("First", calls=(READ,)),
        Turn("Both.", calls=(own, replace(READ, id="ours"), replace(own, id="theirs"))),
        ANSWER,
    ]
    async with house(script) as all_of:
        if streamed:
            message = await _folded(await all_of.chat(tools=[OWN, MCP], stream=True))
        else:
            completion = await all_of.chat(tools=[OWN, MCP])
            assert completion.choices[0].finish_reason == "tool_calls"
            message = completion.choices[0].message.model_dump(exclude_none=True)
        assert message["content"] == "First\n\nBoth."
        assert [c["function"]["name"] for c in message["tool_calls"]] == ["read_file"] * 2
        results = [
            {"role": "tool", "tool_call_id": call["id"], "content": f"text {at}"}
            for at, call in enumerate(message["tool_calls"])
        ]
        history = [*ASK, message, *results]
        completion = await all_of.chat(tools=[OWN, MCP], messages=history)
        sent = all_of.models.requests[-1].messages
    assert completion.choices[0].message.content == "You are to buy milk."
    roles = " ".join(m["role"] for m in sent)
    assert roles == "user assistant tool assistant tool tool tool"
    assert sent[1]["content"] == "First"
    assert sent[2]["content"] == "buy milk"
    assert [c["id"] for c in sent[3]["tool_calls"]][1:] == ["ours", "theirs"]
    assert [m["content"] for m in sent[4:]] == ["buy milk", "text 0", "text 1"]
    assert len(all_of.tools.calls) == 2


async def _folded(stream: Any) -> dict[str, Any]:
    text, calls = "", dict[int, dict[str, Any]]()
    async for chunk in stream:
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for part in choice.delta.tool_calls or []:
                call = calls.setdefault(part.index, {"arguments": ""})
                call["id"] = part.id or call["id"]
                call["name"] = part.function.name or call["name"]
                call["arguments"] += part.function.arguments or ""
    assert sorted(calls) == list(range(len(calls)))
    made = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": call["arguments"]},
        }
        for call in calls.values()
    ]
    return {"role": "assistant", "content": text, "tool_calls": made}


async def test_a_responses_client_sees_each_call_as_an_item() -> None:
    """With its arguments and what came of it; then the message."""
    async with house([Turn(calls=(READ,)), ANSWER]) as all_of:
        response = await all_of.respond()
    call, message = response.output
    assert (call.type, call.server_label, call.name) == ("mcp_call", "notes", "read_note")
    assert (json.loads(call.arguments), call.output) == ({"name": "todo"}, "buy milk")
    assert (call.error, message.type) == (None, "message")
    assert response.output_text == "You are to buy milk."


async def test_a_streamed_response_has_the_call_among_its_items() -> None:
    """In its place, numbered without a gap, and in the final response too."""
    async with house([Turn("Look.", calls=(READ,)), ANSWER]) as all_of:
        events = [event async for event in await all_of.respond(stream=True)]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    done = [e.item.type for e in events if e.type == "response.output_item.done"]
    assert done == ["message", "mcp_call", "message"]
    assert [item.type for item in events[-1].response.output] == done
    assert not any("function_call" in event.type for event in events)


@pytest.mark.parametrize("stored", [False, True])
async def test_a_response_is_continued_with_the_calls_of_both(stored: bool) -> None:
    """By its id, or by giving the items back."""
    own = Call("read_file", {"path": "a"})
    async with house([Turn(calls=(own, READ)), ANSWER, ANSWER]) as all_of:
        response = await all_of.respond(tools=[OWN_RESPONSES, RESPONSES_MCP])
        (call,) = [item for item in response.output if item.type == "function_call"]
        assert call.name == "read_file"
        result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "text"}
        if stored:
            more: Any = {"previous_response_id": response.id, "input": [result]}
        else:
            items = [item.model_dump(exclude_none=True) for item in response.output]
            asked = {"role": "user", "content": "What?"}
            more = {"input": [asked, *items, result]}
        await all_of.respond(tools=[OWN_RESPONSES, RESPONSES_MCP], **more)
        sent = all_of.models.requests[-1].messages
    assert [m["role"] for m in sent] == ["user", "assistant", "tool", "tool"]
    names = [c["function"]["name"] for c in sent[1]["tool_calls"]]
    assert sorted(names) == ["mcp__notes__read_note", "read_file"]
    assert sorted(m["content"] for m in sent[2:]) == ["buy milk", "text"]


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_messages_client_names_the_server_and_gets_the_answer(streamed: bool) -> None:
    """By `mcp_servers`, in the body that the SDK sends."""
    servers: Any = {"mcp_servers": [{"type": "url", "name": "notes"}]}
    asked: Any = {"model": "auto", "max_tokens": 100, "messages": ASK, "extra_body": servers}
    script = [Turn("Look.", calls=(READ,)), ANSWER]
    async with house(script) as all_of, all_of.anthropic as client:
        if streamed:
            async with client.messages.stream(**asked) as stream:
                message = await stream.get_final_message()
        else:
            message = await client.messages.create(**asked)
    text = "".join(block.text for block in message.content if block.type == "text")
    assert text == "Look.\n\nYou are to buy milk."
    assert {block.type for block in message.content} == {"text"}
    assert message.stop_reason == "end_turn"
    assert message.usage.input_tokens == 200


async def test_a_messages_turn_with_calls_for_both_goes_on() -> None:
    """The results of one answer stand together."""
    own = Call("read_file", {"path": "a"})
    tools: Any = [OWN_MESSAGES, {"type": "mcp_toolset", "mcp_server_name": "notes"}]
    servers: Any = {"mcp_servers": [{"type": "url", "name": "notes"}]}
    asked: Any = {"model": "auto", "max_tokens": 100, "tools": tools, "extra_body": servers}
    async with house([Turn(calls=(own, READ)), ANSWER]) as all_of, all_of.anthropic as client:
        message = await client.messages.create(messages=ASK, **asked)
        (use,) = [block for block in message.content if block.type == "tool_use"]
        result: Any = {"type": "tool_result", "tool_use_id": use.id, "content": "text"}
        history: Any = [
            *ASK,
            {"role": "assistant", "content": [use.model_dump()]},
            {"role": "user", "content": [result, {"type": "text", "text": "and?"}]},
        ]
        answer = await client.messages.create(messages=history, **asked)
        sent = all_of.models.requests[-1].messages
    assert answer.content[0].text == "You are to buy milk."
    assert [m["role"] for m in sent] == ["user", "assistant", "tool", "tool", "user"]
    assert [m["content"] for m in sent[2:]] == ["buy milk", "text", "and?"]


async def test_a_policy_that_allows_a_server_allows_its_tools() -> None:
    """And any other server is refused before a model is chosen."""
    rule = ToolRule("enforce", ("mcp:notes/*",))
    async with house([Turn(calls=(READ,)), ANSWER], rule=rule) as all_of:
        assert (await all_of.chat()).choices[0].message.content == "You are to buy milk."
        with pytest.raises(openai.PermissionDeniedError, match="mcp:other"):
            await all_of.chat(tools=[{"type": "mcp", "mcp": {"server": "other"}}])
        assert all_of.gateway.receipt().decision is None


async def test_a_policy_that_allows_one_tool_shows_the_model_that_one() -> None:
    """One that the request names and the policy lacks is refused."""
    rule = ToolRule("enforce", ("mcp:notes/read_note",))
    async with house([ANSWER], rule=rule) as all_of:
        await all_of.chat()
        assert all_of.models.requests[0].tool_names == ("mcp__notes__read_note",)
        named = {"server": "notes", "allowed_tools": ["read_note", "write_note"]}
        with pytest.raises(openai.PermissionDeniedError, match="mcp:notes/write_note"):
            await all_of.chat(tools=[{"type": "mcp", "mcp": named}])


async def test_a_dry_run_notes_the_tools_that_the_list_lacks() -> None:
    """They are offered; the receipt names them as the policy would."""
    rule = ToolRule("dry_run", ("mcp:notes/read_note",))
    async with house([ANSWER], rule=rule) as all_of:
        await all_of.chat()
        assert "mcp__notes__write_note" in all_of.models.requests[0].tool_names
        outside = all_of.gateway.receipt().tools_outside
    assert "mcp:notes/write_note" in outside
    assert "mcp:notes/read_note" not in outside


async def test_the_tools_that_the_request_names_are_all_that_is_offered() -> None:
    """Under names that no tool of the client has."""
    taken: Any = {"type": "function", "function": {"name": "mcp__notes__read_note"}}
    named: Any = {"type": "mcp", "mcp": {"server": "notes", "allowed_tools": ["read_note"]}}
    async with house([ANSWER]) as all_of:
        await all_of.chat(tools=[taken, named])
        names = all_of.models.requests[0].tool_names
    assert len(names) == len(set(names)) == 2
    assert names[1].startswith("mcp__notes__read_note_")


@pytest.mark.parametrize(
    ("tool", "field"),
    [
        ({"type": "mcp", "server_label": "gone"}, "gone"),
        ({"type": "mcp", "server_label": "notes", "server_url": "http://x.example.org"}, "address"),
        ({"type": "mcp", "server_label": "notes", "authorization": "mine"}, "authorization"),
        ({"type": "mcp", "server_label": "notes", "headers": {"a": "b"}}, "headers"),
        ({"type": "mcp", "server_label": "notes", "require_approval": "always"}, "approval"),
        ({"type": "mcp", "server_label": "notes", "allowed_tools": [1]}, "allowed_tools"),
        ({"type": "mcp", "connector_id": "connector_gmail", "server_label": "notes"}, "connector"),
        ({"type": "mcp"}, "server_label"),
    ],
)
async def test_what_the_gateway_does_not_do_is_refused(tool: Any, field: str) -> None:
    """A server or a credential of the client's own, approvals, nonsense: 400, and nobody asked."""
    async with house([ANSWER]) as all_of:
        with pytest.raises(openai.BadRequestError, match=field):
            await all_of.respond(tools=[tool])
        assert all_of.models.requests == []
        assert {receipt.status for receipt in all_of.receipts} == {"refused"}


async def test_the_address_that_is_registered_may_be_named() -> None:
    """As clients do that were made for another gateway."""
    async with house([ANSWER]) as all_of:
        tool: Any = {**RESPONSES_MCP, "server_url": all_of.tools.url}
        response = await all_of.respond(tools=[tool])
    assert response.output_text == "You are to buy milk."


async def test_what_goes_wrong_in_a_tool_is_for_the_model_to_read() -> None:
    """Wrong arguments, no arguments at all, a tool that hangs: the answer still comes."""
    bad = (
        Call("mcp__notes__read_note", {"name": "none"}),
        Call("mcp__notes__read_note", '{"name": '),
        Call("mcp__notes__hang", {}),
        Call("mcp__notes__big", {"characters": 20_000_000}),
    )
    async with house([Turn(calls=bad), ANSWER], timeout=1.0) as all_of:
        completion = await all_of.chat()
        results = [str(m["content"]) for m in all_of.models.requests[1].messages[-4:]]
        errors = [call.error for call in all_of.gateway.receipt().connection_calls]
    assert completion.choices[0].message.content == "You are to buy milk."
    assert all(result.startswith("Error: ") for result in results)
    assert "no JSON object" in results[1]
    assert "within 1 s" in results[2]
    assert None not in errors


async def test_a_hostile_result_is_cut_and_cleaned_before_the_model_sees_it() -> None:
    """Neither megabytes nor escape sequences get into the prompt."""
    calls = (Call("mcp__notes__big", {"characters": 900_000}), Call("mcp__notes__odd"))
    async with house([Turn(calls=calls), ANSWER]) as all_of:
        await all_of.chat()
        big, odd = (str(m["content"]) for m in all_of.models.requests[1].messages[-2:])
    assert len(big) < 61_000
    assert not set(odd) & {"\x1b", "\x00", "\u202e"}


async def test_a_model_that_only_calls_tools_has_to_answer_in_the_end() -> None:
    """After eight rounds the choice is `none`; whoever calls on is cut off with an error."""

    def obeys(request: Any) -> Turn:
        return ANSWER if request.body.get("tool_choice") == "none" else Turn(calls=(READ,))

    async with house(obeys) as all_of:
        completion = await all_of.chat()
        assert completion.choices[0].message.content == "You are to buy milk."
        assert len(all_of.tools.calls) == 8
    async with house(lambda _: Turn(calls=(READ,))) as all_of:
        with pytest.raises(openai.InternalServerError, match="9 answers in a row"):
            await all_of.chat()
        receipt = all_of.gateway.receipt()
        assert (receipt.status, len(receipt.connection_calls)) == ("failed", 8)
        assert receipt.usage.input_tokens == 900


async def test_a_choice_that_forces_a_call_forces_one_only() -> None:
    """Else the model could never answer."""
    async with house([Turn(calls=(READ,)), ANSWER]) as all_of:
        await all_of.chat(tool_choice="required")
        choices = [request.body.get("tool_choice") for request in all_of.models.requests]
    assert choices == ["required", "auto"]


async def test_a_response_may_limit_the_calls() -> None:
    """`max_tool_calls` counts those that the gateway runs."""
    script = [Turn(calls=(READ,)), ANSWER]
    async with house(script) as all_of:
        await all_of.respond(max_tool_calls=1)
        assert all_of.models.requests[-1].body["tool_choice"] == "none"


async def test_the_credential_is_nowhere_but_at_the_tool_server(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Though the server repeats it in a result."""
    call = Call("mcp__notes__echo_headers")
    async with house([Turn(calls=(call,)), ANSWER]) as all_of:
        response = await all_of.respond()
        prompts = json.dumps([r.body for r in all_of.models.requests])
        receipt = repr(all_of.gateway.receipt())
    assert all_of.tools.headers[-1]["authorization"] == f"Bearer {TOKEN}"
    printed = capfd.readouterr()
    for text in (response.model_dump_json(), prompts, receipt, printed.out, printed.err):
        assert TOKEN not in text
    assert "[credential]" in prompts


async def test_a_server_that_is_away_fails_the_request_cleanly() -> None:
    """502 with the connection's name, before any model is asked."""
    gone = Connection("notes", url="http://127.0.0.1:9/mcp", timeout=2.0)
    async with (
        ScriptedModelServer([ANSWER]) as models,
        McpConnections({"notes": gone}, SystemClock()) as connections,
        running_gateway(
            catalog_at(models.base_url, MODEL), GatewaySetup(connections=connections)
        ) as gateway,
        client_of(gateway) as client,
    ):
        with pytest.raises(openai.APIStatusError, match="notes: cannot be reached") as failure:
            await client.chat.completions.create(model="auto", messages=ASK, tools=[MCP])
        assert failure.value.status_code == 502
        assert models.requests == []
        assert gateway.receipt().error_code == "connection_failed"


async def test_a_client_that_goes_away_stops_the_tool_and_pays_for_what_was_used() -> None:
    """The call is cancelled at its server within a second; the receipt holds it."""
    hang = Call("mcp__notes__hang")
    async with house([Turn(calls=(hang,)), ANSWER]) as all_of:
        asking = asyncio.create_task(all_of.chat(stream=True))
        await asyncio.wait_for(all_of.tools.hanging.wait(), 5)
        asking.cancel()
        await asyncio.wait({asking})
        await asyncio.wait_for(all_of.tools.given_up.wait(), 1.5)
        for _ in range(200):
            if all_of.receipts:
                break
            await asyncio.sleep(0.01)
        receipt = all_of.gateway.receipt()
    assert receipt.status == "cancelled"
    assert receipt.usage.input_tokens == 100
    assert receipt.cost_micros == 140
    assert [call.error for call in receipt.connection_calls] == ["the client went away"]
    assert len(all_of.models.requests) == 1


async def test_a_request_that_names_no_connection_is_served_as_ever() -> None:
    """What is unknown to the gateway still passes."""
    async with house([ANSWER]) as all_of:
        await all_of.chat(tools=[OWN], extra_body={"seldom": 1})
        body = all_of.models.requests[0].body
    assert body["seldom"] == 1
    assert all_of.tools.headers == []
