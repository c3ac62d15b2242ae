"""MCP servers that run inside the sandbox of a run, good and bad ones."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from turnout.agent.base import AgentConfig, Brief
from turnout.agent.client import HttpModelClient
from turnout.agent.loop import LoopStrategy
from turnout.agent.loop.state import LoopState
from turnout.agent.servers import SandboxCage, served_tools
from turnout.agent.tools.arguments import read_arguments
from turnout.agent.tools.base import Arguments, ToolContext, ToolOutput
from turnout.agent.tools.surfaces import SURFACES
from turnout.core.clock import SystemClock
from turnout.core.events import LoopEnded, ModelCallDone, ToolCallDone, ToolCallIntended
from turnout.core.govern.connections import Connection, ToolOutcome
from turnout.core.ids import RunId, new_run_id
from turnout.core.json import JsonObject
from turnout.core.policies import Policy, ToolRule
from turnout.gateway.connections.port import NoConnections
from turnout.mcp.connections import McpConnections
from turnout.sandbox.base import BaseSpec, Command, Limits, Sandbox
from turnout.sandbox.bubblewrap import BubblewrapDriver
from turnout.testing.connections import FakeConnections
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, RunningGateway, catalog_at, running_gateway
from turnout.testing.model_server import ScriptedModelServer
from turnout.testing.sandbox import ScriptedSandbox
from turnout.testing.turns import Call, Turn
from turnout.wiring.connections import open_servers

PROGRAM = Path(__file__).with_name("plain_mcp_server.py").read_text(encoding="utf-8")


@asynccontextmanager
async def sandboxed(state: Path) -> AsyncIterator[Sandbox]:
    """Yield a sandbox that holds the program of a server."""
    driver = BubblewrapDriver(state)
    sandbox = await driver.create(new_run_id(), await driver.prepare(BaseSpec(None)), Limits())
    try:
        await sandbox.write("server.py", PROGRAM.encode())
        yield sandbox
    finally:
        await sandbox.close()


def server(kind: str = "good", **more: Any) -> Connection:
    """Return a server of one kind, under the name of its kind."""
    usual = Connection(kind, command=("python3", "server.py", kind), timeout=20.0)
    return replace(usual, longest_result=1_000_000, **more)


@asynccontextmanager
async def opened(sandbox: Sandbox, *servers: Connection) -> AsyncIterator[McpConnections]:
    """Open servers in a sandbox, as a run does."""
    named = {each.name: each for each in servers}
    async with McpConnections(named, SystemClock(), SandboxCage(sandbox)) as connections:
        yield connections


def context(sandbox: Sandbox) -> ToolContext:
    """Return what tools of a run work with."""
    brief = Brief(sandbox.run_id, "Note it.", "shell", None, None)
    return ToolContext(sandbox, brief, AgentConfig())


async def test_many_tools_are_cut_and_a_list_that_changes_stays_as_it_was(
    sandbox_state: Path,
) -> None:
    """What a run has shown its model and its policy once is what it goes on with."""
    good, many = server(), server("many")
    async with sandboxed(sandbox_state) as sandbox, opened(sandbox, good, many) as servers:
        served = await served_tools(servers, [good, many])
        assert len(served.tools) == 128
        (notice,) = served.notices
        assert "left out" in notice.text
        assert "`allow`" in notice.text
        grow = next(tool for tool in served.tools if tool.spec.name == "mcp:good/grow")
        assert (await grow.call(Arguments({"text": ""}), context(sandbox))).text == "grown"
        note = next(tool for tool in served.tools if tool.spec.name == "mcp:good/note")
        assert (await note.call(Arguments({"text": "a"}), context(sandbox))).text == '{"text": "a"}'


async def test_tools_are_called_and_what_goes_wrong_is_a_result(sandbox_state: Path) -> None:
    """Texts, images, data, errors, a hang and a death; none is made twice, and the next works."""
    good = server(environment={"GREETING": "hello"}, timeout=4.0)
    async with sandboxed(sandbox_state) as sandbox, opened(sandbox, good) as servers:
        served = await served_tools(servers, [good])
        assert served.notices == ()
        tools = {tool.spec.name: tool for tool in served.tools}
        assert all(tool.writes for tool in served.tools)

        async def call(name: str, raw: str = '{"text": "a"}') -> ToolOutput:
            tool = tools[f"mcp:good/{name}"]
            return await tool.call(read_arguments(tool.spec, raw), context(sandbox))

        assert (
            await call("note", '{"text": "a", "times": "3"}')
        ).text == '{"text": "a", "times": 3}'
        assert (await call("image")).text == "See:\n[image of type image/png, not shown]"
        assert (await call("data")).text == '{"rows": [1, 2]}'
        assert await call("fail") == ToolOutput("no such note", True, log=True, unsure=True)
        assert await call("refuse") == ToolOutput("not like this", is_error=True, unsure=True)
        assert (await call("big")).text.endswith("xthe end")
        environment = (await call("env")).text.splitlines()
        assert "GREETING=hello" in environment
        assert not [line for line in environment if "KEY" in line or "TOKEN" in line]
        hung = await call("hang")
        assert (hung.text, hung.unsure) == ("The MCP server good: did not answer within 4 s.", True)
        assert (await call("note")).text == '{"text": "a"}'
        died = await call("die")
        assert died.text == "The MCP server good: its program ended with status 3."
        assert died.unsure
        assert (await call("note")).text == '{"text": "a"}'
        await sandbox.pause()
        assert (await call("note")).text == '{"text": "a"}'
        log = (await sandbox.read("calls.log")).data.decode().split()
    assert log.count("hang") == log.count("die") == 1


async def test_servers_that_misbehave_are_left_out_and_said(sandbox_state: Path) -> None:
    """One hangs, one dies, one never ends a line, one floods, one has too much, one odd names."""
    servers = [
        server("hangs", timeout=2.0),
        server("dies"),
        server("endless"),
        server("floods"),
        server("many", allow=("tool_400", "tool_001", "tool_999")),
        server("huge"),
        server("odd"),
        server("marked"),
        server("noisy", allow=("note",)),
        Connection("absent", command=("no-such-program",)),
        Connection("bare", command=("python3", "-m", "no_such_server"), timeout=20.0),
    ]
    async with sandboxed(sandbox_state) as sandbox, opened(sandbox, *servers) as connections:
        served = await served_tools(connections, servers)
        names = [tool.spec.name for tool in served.tools]
        said = " ".join(notice.text for notice in served.notices)
        noisy = next(tool for tool in served.tools if tool.spec.name == "mcp:noisy/note")
        repeated = await noisy.call(Arguments({"text": "a"}), context(sandbox))
        marked = next(tool for tool in served.tools if tool.spec.name == "mcp:marked/note").spec
    assert repeated.text == '{"text": "a"}'
    assert [name for name in names if "floods" not in name] == [
        "mcp:many/tool_001",
        "mcp:many/tool_400",
        "mcp:huge/note",
        "mcp:odd/dotted.name",
        "mcp:odd/note",
        "mcp:marked/note",
        "mcp:noisy/note",
    ]
    assert "The MCP server hangs: did not answer within 2 s." in said
    assert "dies: its program ended with status 1, saying: plain: the port 5432 is taken." in said
    assert "No module named no_such_server. Name its packages under `[tests] requirements`" in said
    assert "The MCP server endless: said more than 8 MiB in one message." in said
    assert "The MCP server floods: says far more than it is asked for." in said
    assert "The MCP server many has no tool tool_999" in said
    assert "absent: its program could not be started" in said
    assert "<|im" not in str(marked)
    assert "\x1b" not in str(marked)


@asynccontextmanager
async def gateway_before(
    turns: Sequence[Turn], rule: ToolRule, connections: FakeConnections | None = None
) -> AsyncIterator[tuple[HttpModelClient, RunningGateway, ScriptedModelServer]]:
    """Yield a client to a gateway with a tool rule before a scripted model."""
    setup = GatewaySetup(policy=Policy(tools=rule), connections=connections or NoConnections())
    async with (
        ScriptedModelServer(turns) as model,
        running_gateway(catalog_at(model.base_url, deployment("p/m")), setup) as gateway,
        HttpModelClient(
            base_url=gateway.base_url, uds=None, api_key="", clock=SystemClock()
        ) as client,
    ):
        yield client, gateway, model


SHELL = tuple(tool.spec.name for tool in SURFACES["shell"].tools)
PLAN = Turn("1. Note it.")


@pytest.mark.parametrize(
    ("allow", "refused"),
    [
        (("mcp:good/*",), None),
        (("mcp:good/note", "mcp:good/env"), None),
        (("mcp:good/note",), "mcp:good/env"),
        (("mcp:other/*",), "mcp:good/note"),
        (("mcp__good__note", "mcp__good__env"), "mcp:good/note"),
    ],
)
async def test_policy_judges_tools_of_servers_in_the_sandbox_by_server_and_tool(
    allow: tuple[str, ...], refused: str | None
) -> None:
    """403 before a model is chosen; the receipt has the names of the policy."""
    served = FakeConnections({"good": {"note": _said, "env": _said}})
    config = AgentConfig(mcp=(server(),))
    turns = (PLAN, Turn(calls=(Call("mcp__good__note"), Call("finish", {"summary": "Done."}))))
    rule = ToolRule("enforce", (*SHELL, *allow))
    async with gateway_before(turns, rule) as (client, gateway, model):
        strategy = LoopStrategy(
            client, ScriptedSandbox(), config, SystemClock(), servers=lambda _: nullcontext(served)
        )
        events = [event async for event in strategy.run(_brief(new_run_id()))]
        receipts = list(gateway.receipts.receipts.values())
        asked = len(model.requests)
    assert isinstance(end := events[-1], LoopEnded)
    assert receipts[1].tools_declared == (*SHELL, "mcp:good/note", "mcp:good/env")
    if refused is None:
        assert (end.outcome, asked) == ("answered", 2)
        assert receipts[1].tools_called == ("mcp:good/note", "finish")
        assert served.calls == [("good", "note", {})]
    else:
        assert (end.outcome, asked) == ("refused", 1)
        assert f"`{refused}` is not allowed" in end.reason
        assert (receipts[1].http_status, receipts[1].decision) == (403, None)
        assert served.calls == []


@pytest.mark.parametrize(
    ("wanted", "allow", "refused"),
    [
        ("tracker", ("mcp:tracker/*",), None),
        ("tracker/find", ("mcp:tracker/find",), None),
        ("tracker/find", ("mcp:tracker/close",), "mcp:tracker/find"),
        ("tracker", ("mcp:other/*",), "mcp:tracker/*"),
    ],
)
async def test_policy_judges_connections_that_our_agent_names(
    wanted: str, allow: tuple[str, ...], refused: str | None
) -> None:
    """Servers that the gateway calls itself, for our loop as for any client."""
    tracker = FakeConnections({"tracker": {"find": _said, "close": _said}})
    config = AgentConfig(connections=(wanted,))
    turns = (
        PLAN,
        Turn(calls=(Call("mcp__tracker__find"),)),
        Turn(calls=(Call("finish", {"summary": "Done."}),)),
    )
    rule = ToolRule("enforce", (*SHELL, *allow))
    async with gateway_before(turns, rule, tracker) as (client, gateway, model):
        strategy = LoopStrategy(client, ScriptedSandbox(), config, SystemClock())
        events = [event async for event in strategy.run(_brief(new_run_id()))]
        receipt = list(gateway.receipts.receipts.values())[-1]
        asked = len(model.requests)
    assert isinstance(end := events[-1], LoopEnded)
    if refused is None:
        assert (end.outcome, asked) == ("answered", 3)
        assert tracker.calls == [("tracker", "find", {})]
        replies = [event for event in events if isinstance(event, ModelCallDone)]
        assert [reply.routing.connection_calls for reply in replies] == [(), ("mcp:tracker/find",)]
        state = LoopState.of(events, SURFACES["shell"])
        assert state.effects.text().startswith("mcp__tracker__find, for your reply\n")
    else:
        assert (end.outcome, asked) == ("refused", 1)
        assert f"`{refused}` is not allowed" in end.reason
        assert (receipt.http_status, receipt.decision) == (403, None)
        assert tracker.calls == []


async def test_a_run_works_with_a_server_in_its_sandbox(sandbox_state: Path) -> None:
    """On real parts: the server sees what the tools of the surface have written, and changes it."""
    run = Call("run", {"command": "echo 'x = 1' > a.py; tail -n 1 calls.log"})
    note = Call("mcp__good__note", {"text": "a", "times": "3"})
    end = Call("finish", {"summary": "Done."})
    turns = (
        PLAN,
        Turn(calls=(note, run)),
        Turn(calls=(Call("mcp__good__die", {"text": ""}), note)),
        Turn(calls=(end,)),
    )
    config = AgentConfig(mcp=(server(allow=("note", "die")),))
    async with (
        sandboxed(sandbox_state) as sandbox,
        gateway_before(turns, ToolRule("enforce", (*SHELL, "mcp:good/*"))) as (client, _, model),
    ):
        servers = open_servers(config, SystemClock())
        strategy = LoopStrategy(client, sandbox, config, SystemClock(), servers=servers)
        events = [event async for event in strategy.run(_brief(sandbox.run_id))]
        left = await sandbox.run(Command(shell="cat /proc/[0-9]*/cmdline"))
    assert isinstance(ended := events[-1], LoopEnded)
    assert (ended.outcome, ended.answer) == ("answered", "Done.")
    results = [event.result for event in events if isinstance(event, ToolCallDone)]
    repeated = '{"text": "a", "times": 3}'
    died = "The MCP server good: its program ended with status 3."
    assert [r.content for r in results] == [repeated, "exit 0\nnote\n", died, repeated, "Done."]
    assert [event.call.name for event in events if isinstance(event, ToolCallIntended)] == [
        "mcp:good/note",
        "run",
        "mcp:good/die",
        "mcp:good/note",
        "finish",
    ]
    assert not model.history_faults
    assert b"server.py" not in left.stdout


def _said(arguments: JsonObject) -> ToolOutcome:
    return ToolOutcome(f"done with {len(arguments)} arguments")


def _brief(run_id: RunId) -> Brief:
    return Brief(run_id, "Note it.", "shell", None, None)
