"""A loop whose model has tools of MCP servers."""

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from tests.unit.agent.workshop import RUN, Workshop

from turnout.agent.approval import Unattended
from turnout.agent.base import AgentConfig, Brief
from turnout.agent.loop import LoopStrategy
from turnout.agent.loop.effects import Effects
from turnout.agent.loop.state import Role
from turnout.agent.servers import OpenServers
from turnout.agent.tools.mcp_tool import ToolServers
from turnout.agent.tools.surfaces import SURFACES
from turnout.core.events import (
    ApprovalAsked,
    ApprovalGiven,
    LoopEnded,
    Notice,
    ToolCallDone,
    ToolCallIntended,
)
from turnout.core.govern.connections import Connection, ToolOutcome
from turnout.core.json import JsonObject
from turnout.core.messages import ToolMessage
from turnout.errors import ConnectionFailedError, ToolError
from turnout.sandbox.base import Sandbox
from turnout.testing.clock import FrozenClock
from turnout.testing.connections import FakeConnections
from turnout.testing.model_client import ScriptedModelClient
from turnout.testing.sandbox import ScriptedSandbox
from turnout.testing.turns import Call, Turn

NOTES = Connection("notes", command=("notes-server",))
WRITE = Call("mcp__notes__write", {"text": "milk"})
DONE = Turn("Done.")


def written(arguments: JsonObject) -> ToolOutcome:
    """Say what was written."""
    return ToolOutcome(f"wrote {arguments['text']}")


def fails(error: Exception) -> ToolOutcome:
    """Fail."""
    raise error


def notes(**tools: Any) -> FakeConnections:
    """Return a server of notes."""
    return FakeConnections({"notes": {"write": written, **tools}})


def opened(servers: FakeConnections) -> OpenServers:
    """Return what opens them in any sandbox."""

    def opening(_: Sandbox) -> AbstractAsyncContextManager[ToolServers]:
        return nullcontext(servers)

    return opening


def workshop(servers: FakeConnections, *wanted: Connection, **config: Any) -> Workshop:
    """Return a run that has them."""
    agent = AgentConfig(mcp=wanted or (NOTES,), **config)
    return Workshop(config=agent, servers=opened(servers))


async def test_tools_of_servers_stand_beside_those_of_the_surface() -> None:
    """Policy and record know them by server; each call reaches its server once."""
    servers, client = notes(), ScriptedModelClient(Turn(calls=(WRITE,)), DONE)
    finished = await workshop(servers).work(client)
    assert finished.end.outcome == "answered"
    assert finished.results == ["wrote milk"]
    assert servers.calls == [("notes", "write", {"text": "milk"})]
    declared = [tool.name for tool in client.asked("act")[0].tools]
    assert declared == [*(t.spec.name for t in SURFACES["guide"].tools), "mcp:notes/write"]
    intended = [e.call.name for e in finished.events if isinstance(e, ToolCallIntended)]
    assert intended == ["mcp:notes/write"]
    assert "mcp__notes__write" in str(client.asked("act")[1].messages[-2])


async def test_a_server_that_is_away_is_said_and_the_run_goes_on() -> None:
    """People read why; the model has the tools that are there."""
    away = Connection("away", command=("away-server",), allow=("x",))
    servers = FakeConnections({"notes": {"write": written}, "away": {}})
    client = ScriptedModelClient(Turn(calls=(WRITE,)), DONE)
    finished = await workshop(servers, away, NOTES).work(client)
    notice = finished.events[0]
    assert isinstance(notice, Notice)
    assert (notice.level, "away: cannot be reached" in notice.text) == ("warning", True)
    assert finished.results == ["wrote milk"]


async def test_whatever_goes_wrong_is_a_result_and_no_summary_forgets_it() -> None:
    """A refusal, a server that is gone, an error of the tool: something may have been done."""
    servers = notes(
        refuse=lambda _: fails(ToolError("not like this")),
        go=lambda _: fails(ConnectionFailedError("notes: ended before it answered.")),
        err=lambda _: ToolOutcome("no space", is_error=True),
        say=lambda _: ToolOutcome(""),
    )
    calls = tuple(Call(f"mcp__notes__{name}") for name in ("refuse", "go", "err", "say"))
    finished = await workshop(servers).work(ScriptedModelClient(Turn(calls=calls), DONE))
    done = [e.result for e in finished.events if isinstance(e, ToolCallDone)]
    assert [result.content for result in done] == [
        "not like this",
        "notes: ended before it answered.",
        "no space",
        "It returned nothing.",
    ]
    assert [(r.is_error, r.unsure) for r in done] == [(True, True)] * 3 + [(False, False)]
    effects = Effects(SURFACES["guide"])
    intended = [e.call for e in finished.events if isinstance(e, ToolCallIntended)]
    for call, result in zip(intended, done, strict=True):
        effects.note(call, result)
    assert effects.text().count("mcp:notes/") == 4


async def test_a_name_or_an_argument_that_is_wrong_is_told_in_the_models_own_words() -> None:
    """What it reads is the name that it can call."""
    calls = (Call("mcp__notes__wite"), Call("mcp__notes__write", '{"text": }'))
    finished = await workshop(notes()).work(ScriptedModelClient(Turn(calls=calls), DONE))
    assert "Did you mean `mcp__notes__write`?" in finished.results[0]
    assert "The arguments of mcp__notes__write cannot be used" in finished.results[1]
    assert "mcp:" not in "".join(finished.results)


async def test_a_long_result_is_read_on_by_the_model() -> None:
    """It is capped like any output, and whole on record."""
    servers = notes(big=lambda _: ToolOutcome("x" * 20_000 + "end"))
    read_on = Call("read_file", {"path": "output:1", "offset": 1})
    turns = (Turn(calls=(Call("mcp__notes__big"),)), Turn(calls=(read_on,)), DONE)
    client = ScriptedModelClient(*turns, others={"summary": Turn("Much.")})
    finished = await workshop(servers).work(client)
    assert finished.results[0].endswith("xend")
    assert len(finished.results[0]) <= 8_000
    assert "xxxx" in finished.results[1]


class Person:
    """Allows everything, once the sandbox is frozen."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def decide(self, asked: ApprovalAsked) -> ApprovalGiven:
        """Allow it."""
        self.asked.append(asked.call.name)
        return ApprovalGiven(asked.step, asked.call.id, True, "ann", "")


async def test_a_rule_about_a_server_has_its_calls_wait() -> None:
    """Whatever they are about; what waited goes on in a sandbox that is no longer frozen."""
    person, seen = Person(), list[bool]()
    config = AgentConfig(mcp=(NOTES,), approvals=("mcp:notes",))
    allowed = Workshop(config=config, servers=opened(notes()), approver=person)
    client = ScriptedModelClient(Turn(calls=(WRITE, Call("list_files"))), DONE)
    async for event, sandbox in allowed.events(client):
        if isinstance(event, ToolCallDone):
            seen.append(sandbox.frozen)
    assert person.asked == ["mcp:notes/write"]
    assert seen == [False, False]
    servers = notes()
    refused = Workshop(config=config, servers=opened(servers), approver=Unattended())
    finished = await refused.work(ScriptedModelClient(Turn(calls=(WRITE,)), DONE))
    assert "--approve 'mcp:notes'" in finished.results[0]
    assert servers.calls == []


async def test_a_call_under_way_at_a_crash_is_never_made_again() -> None:
    """Also where the server does not start in the process that goes on."""
    for later in (notes(), FakeConnections({"notes": {}})):
        whole = await workshop(notes()).work(ScriptedModelClient(Turn(calls=(WRITE,)), DONE))
        at = next(i for i, e in enumerate(whole.events) if isinstance(e, ToolCallIntended))
        client = ScriptedModelClient(DONE)
        resumed = await workshop(later).work(client, whole.events[: at + 1])
        assert later.calls == []
        assert resumed.end.outcome == "answered"
        told = client.asked("act")[0].messages[-1]
        assert isinstance(told, ToolMessage)
        assert told.content.startswith("Interrupted")


async def test_a_review_has_no_tools_of_servers() -> None:
    """It reads, and nothing vouches for what a server does."""
    client, sandbox = ScriptedModelClient(others={"review": DONE}), ScriptedSandbox()
    role, config = Role("review", "review-1"), AgentConfig(mcp=(NOTES,))
    servers = opened(notes())
    strategy = LoopStrategy(client, sandbox, config, FrozenClock(), role, servers=servers)
    brief = Brief(RUN, "Review it.", "review", None, None)
    events = [event async for event in strategy.run(brief)]
    assert isinstance(events[-1], LoopEnded)
    assert not [tool for tool in client.requests[0].tools if tool.name.startswith("mcp:")]
