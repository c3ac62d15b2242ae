"""Connections for each API of clients, at upstreams of each API."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anthropic
import openai
import pytest

import agents
from turnout.core.govern.connections import ToolOutcome
from turnout.core.json import JsonObject
from turnout.gateway.dialog.conversation import Shape
from turnout.testing.connections import FakeConnections
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, RunningGateway, catalog_at, running_gateway
from turnout.testing.messages.server import ScriptedMessagesServer
from turnout.testing.messages.turns import MessagesTurn, text, thinking, tool_use
from turnout.testing.model_server import Call, ScriptedModelServer, Turn
from turnout.testing.responses.server import ScriptedResponsesServer
from turnout.testing.responses.turns import ResponsesTurn, called, said

pytestmark = pytest.mark.clients

READ = "mcp__notes__read"
PARAMETERS: Any = {"type": "object", "properties": {}}
ASK: Any = [{"role": "user", "content": "?"}]


@dataclass
class At:
    """An upstream and what it received."""

    base_url: str
    bodies: Callable[[], list[JsonObject]]
    faults: Callable[[], list[str]]


@asynccontextmanager
async def _chat() -> AsyncIterator[At]:
    script = [Turn("Look.", calls=(Call(READ, {"name": "todo"}),)), Turn("Buy milk.")]
    async with ScriptedModelServer(script) as server:
        yield At(
            server.base_url,
            lambda: [request.body for request in server.requests],
            lambda: server.history_faults,
        )


@asynccontextmanager
async def _messages() -> AsyncIterator[At]:
    use = tool_use(READ, {"name": "todo"}, "toolu_1")
    script = [MessagesTurn((text("Look."), use)), MessagesTurn((text("Buy milk."),))]
    async with ScriptedMessagesServer(script) as server:
        yield At(
            server.base_url,
            lambda: [request.body for request in server.requests],
            lambda: server.faults,
        )


@asynccontextmanager
async def _responses() -> AsyncIterator[At]:
    call = called(READ, '{"name":"todo"}', "call_1")
    script = [ResponsesTurn((said("Look."), call)), ResponsesTurn((said("Buy milk."),))]
    async with ScriptedResponsesServer(script) as server:
        yield At(
            server.base_url,
            lambda: [request.body for request in server.requests],
            lambda: server.faults,
        )


Upstream = Callable[[], AbstractAsyncContextManager[At]]
UPSTREAMS: dict[Shape, Upstream] = {
    "chat": _chat,
    "messages": _messages,
    "responses": _responses,
}


@dataclass
class Notes:
    """One tool, and how it was called."""

    calls: list[JsonObject] = field(default_factory=list)

    def read(self, arguments: JsonObject) -> ToolOutcome:
        """Return a note."""
        self.calls.append(arguments)
        return ToolOutcome("buy milk")


@asynccontextmanager
async def serving(at: str, shape: Shape, notes: Notes) -> AsyncIterator[RunningGateway]:
    """Serve one deployment, and a connection to the notes."""
    connections = FakeConnections({"notes": {"read": notes.read}})
    catalog = catalog_at(at, deployment("p/m"), shape=shape)
    async with running_gateway(catalog, GatewaySetup(connections=connections)) as gateway:
        yield gateway


async def ask_chat(gateway: RunningGateway, streamed: bool) -> str:
    """Return the text that a chat client reads."""
    tools: Any = [{"type": "mcp", "mcp": {"server": "notes"}}]
    async with openai.AsyncOpenAI(base_url=gateway.base_url, api_key="k", max_retries=0) as client:
        asked: Any = {"model": "auto", "messages": ASK, "tools": tools, "stream": streamed}
        answer = await client.chat.completions.create(**asked)
        if not streamed:
            assert answer.choices[0].message.tool_calls is None
            return answer.choices[0].message.content
        deltas = [choice.delta async for chunk in answer for choice in chunk.choices]
        assert all(delta.tool_calls is None for delta in deltas)
        return "".join(delta.content or "" for delta in deltas)


async def ask_messages(gateway: RunningGateway, streamed: bool) -> str:
    """Return the text that a messages client reads."""
    servers: Any = {"mcp_servers": [{"type": "url", "name": "notes"}]}
    asked: Any = {"model": "auto", "max_tokens": 100, "messages": ASK, "extra_body": servers}
    base = gateway.base_url.removesuffix("/v1")
    async with anthropic.AsyncAnthropic(base_url=base, api_key="k", max_retries=0) as client:
        if streamed:
            async with client.messages.stream(**asked) as stream:
                answer = await stream.get_final_message()
        else:
            answer = await client.messages.create(**asked)
    assert {block.type for block in answer.content} == {"text"}
    return "".join(block.text for block in answer.content if block.type == "text")


async def ask_responses(gateway: RunningGateway, streamed: bool) -> str:
    """Return the texts that a responses client reads, divided like those of the others."""
    tools: Any = [{"type": "mcp", "server_label": "notes", "require_approval": "never"}]
    async with openai.AsyncOpenAI(base_url=gateway.base_url, api_key="k", max_retries=0) as client:
        asked: Any = {"model": "auto", "input": "?", "tools": tools, "stream": streamed}
        answer = await client.responses.create(**asked)
        if streamed:
            answer = [event async for event in answer][-1].response
    assert [item.type for item in answer.output] == ["message", "mcp_call", "message"]
    return "\n\n".join(item.content[0].text for item in answer.output if item.type == "message")


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("asks", [ask_chat, ask_messages, ask_responses])
@pytest.mark.parametrize("shape", list(UPSTREAMS))
async def test_every_client_is_served_at_every_upstream(
    shape: Shape, asks: Callable[[RunningGateway, bool], Any], streamed: bool
) -> None:
    """The same text, one call, and requests that the upstream's own rules allow."""
    notes = Notes()
    async with UPSTREAMS[shape]() as at, serving(at.base_url, shape, notes) as gateway:
        assert await asks(gateway, streamed) == "Look.\n\nBuy milk."
        receipt = gateway.receipt()
    assert notes.calls == [{"name": "todo"}]
    assert at.faults() == []
    assert len(at.bodies()) == 2
    assert not any(word in str(at.bodies()) for word in ("mcp_servers", "server_label"))
    assert receipt.tools_called == ("mcp:notes/read",)
    assert receipt.usage.input_tokens == 200
    assert receipt.status == "ok"


async def test_thoughts_that_lead_to_a_call_go_back_with_their_signature() -> None:
    """In the next round, and after the client's own call, though it never saw the first."""
    own = tool_use("own", {}, "toolu_own")
    ours = tool_use(READ, {}, "toolu_ours")
    first, second = thinking("I look.", "sig-1"), thinking("I do both.", "sig-2")
    script = [
        MessagesTurn((first, ours)),
        MessagesTurn((second, own, tool_use(READ, {}, "toolu_more"))),
        MessagesTurn((text("Done."),)),
    ]
    tools: Any = [
        {"name": "own", "input_schema": PARAMETERS},
        {"type": "mcp_toolset", "mcp_server_name": "notes"},
    ]
    servers: Any = {"mcp_servers": [{"type": "url", "name": "notes"}]}
    asked: Any = {"model": "auto", "max_tokens": 4_000, "tools": tools, "extra_body": servers}
    async with (
        ScriptedMessagesServer(script) as server,
        serving(server.base_url, "messages", Notes()) as gateway,
        anthropic.AsyncAnthropic(
            base_url=gateway.base_url.removesuffix("/v1"), api_key="k", max_retries=0
        ) as client,
    ):
        answer = await client.messages.create(messages=ASK, **asked)
        blocks: Any = [block.model_dump(exclude_none=True) for block in answer.content]
        result: Any = {"type": "tool_result", "tool_use_id": "toolu_own", "content": "x"}
        history: Any = [
            *ASK,
            {"role": "assistant", "content": blocks},
            {"role": "user", "content": [result]},
        ]
        await client.messages.create(messages=history, **asked)
        sent: Any = server.requests[-1].body["messages"]
    roles = [message["role"] for message in sent]
    assert roles == ["user", "assistant", "user", "assistant", "user"]
    assert [block["type"] for block in sent[1]["content"]] == ["thinking", "tool_use"]
    assert sent[1]["content"][0]["signature"] == "sig-1"
    assert sent[3]["content"][0]["signature"] == "sig-2"
    results = [block["tool_use_id"] for block in sent[4]["content"]]
    assert results == ["toolu_more", "toolu_own"]
    assert server.faults == []


@agents.function_tool
def own() -> str:
    """Return what only the client knows."""
    return "two litres"


@pytest.mark.parametrize("streamed", [False, True])
async def test_an_agents_sdk_program_uses_a_connection_beside_its_own_tool(streamed: bool) -> None:
    """As a hosted MCP server, over two turns, with both results before the model at the end."""
    script = [
        Turn(calls=(Call(READ, {"name": "todo"}), Call("own", {}))),
        Turn("Two litres of milk."),
    ]
    hosted: Any = {"type": "mcp", "server_label": "notes", "require_approval": "never"}
    quiet = agents.RunConfig(tracing_disabled=True)
    async with (
        ScriptedModelServer(script) as server,
        serving(server.base_url, "chat", Notes()) as gateway,
        openai.AsyncOpenAI(base_url=gateway.base_url, api_key="k", max_retries=0) as client,
    ):
        agent = agents.Agent(
            name="Shopper",
            model=agents.OpenAIResponsesModel(model="auto", openai_client=client),
            tools=[own, agents.HostedMCPTool(tool_config=hosted)],
        )
        if streamed:
            run = agents.Runner.run_streamed(agent, "How much of what?", run_config=quiet)
            async for _ in run.stream_events():
                pass
            answer = run.final_output
        else:
            answer = (await agents.Runner.run(agent, "How much?", run_config=quiet)).final_output
        sent = server.requests[-1].messages
    assert answer == "Two litres of milk."
    assert sorted(str(m["content"]) for m in sent if m["role"] == "tool") == [
        "buy milk",
        "two litres",
    ]
    assert server.history_faults == []
