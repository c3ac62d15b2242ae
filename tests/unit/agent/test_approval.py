"""Tool calls that wait for a person."""

import json

import pytest
from tests.unit.agent.workshop import RUN

from turnout.agent.approval import Gate, Unattended, check_rules, parse_rule, refused
from turnout.agent.base import AgentConfig, Brief
from turnout.agent.loop import LoopStrategy
from turnout.agent.tools.surfaces import SURFACES
from turnout.core.events import (
    ApprovalAsked,
    ApprovalGiven,
    LoopEnded,
    ToolCallDone,
    ToolCallIntended,
)
from turnout.core.ids import ToolCallId
from turnout.core.messages import ToolMessage
from turnout.core.tools import ToolCall
from turnout.errors import ConfigError
from turnout.testing.clock import FrozenClock
from turnout.testing.model_client import ScriptedModelClient
from turnout.testing.sandbox import ScriptedSandbox, result
from turnout.testing.turns import Call, Turn

PATCH = "--- a/deploy/x.sh\n+++ b/deploy/x.sh\n@@ -1 +1 @@\n-a\n+b\n"


def asked_for(name: str, **arguments: object) -> ToolCall:
    """Return a call with these arguments."""
    return ToolCall(ToolCallId("c1"), name, json.dumps(arguments))


class Person:
    """Decides as it was told to, and remembers what it saw."""

    def __init__(
        self, *answers: bool, note: str = "", sandbox: ScriptedSandbox | None = None
    ) -> None:
        self.answers = list(answers)
        self.note = note
        self.sandbox = sandbox
        self.frozen: list[bool] = []

    async def decide(self, asked: ApprovalAsked) -> ApprovalGiven:
        """Give the next answer."""
        if self.sandbox is not None:
            self.frozen.append(self.sandbox.frozen)
        allowed = self.answers.pop(0)
        note = "" if allowed else self.note
        return ApprovalGiven(asked.step, asked.call.id, allowed, "ann", note)


async def rule_of(call: ToolCall, *rules: str, leads: str = "", surface: str = "shell") -> str:
    """Return the rule that has a call wait; empty where none does."""
    sandbox = ScriptedSandbox({"a.py": "x"}, run_id=RUN)
    sandbox.answer("realpath", result(leads.encode()) if leads else result(code=1))
    gate = Gate(rules, Unattended(), sandbox, FrozenClock())
    async for event in gate.ask(1, call, SURFACES[surface]):
        return event.rule
    return ""


@pytest.mark.parametrize(
    ("rule", "call", "waits"),
    [
        ("run", asked_for("run", command="ls"), True),
        ("run", asked_for("read_file", path="a.py"), False),
        ("*", asked_for("read_file", path="a.py"), True),
        ("run:git push*", asked_for("run", command="git   push origin"), True),
        ("run:git push*", asked_for("run", command="git status"), False),
        ("edit_file:deploy/*", asked_for("edit_file", path="deploy/a/b", old="", new=""), True),
        ("edit_file:deploy/", asked_for("edit_file", path="./deploy//x", old="", new=""), True),
        ("edit_file:deploy/*", asked_for("edit_file", path="/repo/deploy/x", old="", new=""), True),
        ("edit_file:deploy/*", asked_for("edit_file", path="a/../deploy/x", old="", new=""), True),
        ("edit_file:deploy/*", asked_for("edit_file", path="src/x", old="", new=""), False),
        ("edit_file:**/x.py", asked_for("edit_file", path="x.py", old="", new=""), True),
        ("*:*.toml", asked_for("edit_file", file_path="a/b.toml", old="", new=""), True),
        ("*:x", asked_for("finish", summary="done"), False),
        ("nothing", asked_for("run", command="ls"), False),
        ("run", asked_for("runn", command="ls"), False),
        ("run", asked_for("run"), False),
    ],
)
async def test_a_rule_is_about_a_tool_and_what_the_call_names(
    rule: str, call: ToolCall, *, waits: bool
) -> None:
    """However the path is spelt; a call that is refused anyway bothers nobody."""
    path = json.loads(call.arguments).get("path") or "a/b.toml"
    leads = f"/repo/{path.removeprefix('/repo/')}\0"
    assert (await rule_of(call, rule, leads=leads) == rule) is waits


@pytest.mark.parametrize(
    ("rule", "waits"), [("apply_patch:deploy/*", True), ("apply_patch:src/*", False)]
)
async def test_a_patch_is_about_the_files_that_it_changes(rule: str, *, waits: bool) -> None:
    """All of them, old names and new ones."""
    call = asked_for("apply_patch", diff=PATCH)
    rule_found = await rule_of(call, rule, leads="/repo/deploy/x.sh\0", surface="guide")
    assert (rule_found == rule) is waits


async def test_a_link_does_not_lead_around_a_rule() -> None:
    """What counts is the file behind it."""
    call = asked_for("edit_file", path="innocent", old="", new="")
    rule = "edit_file:deploy/*"
    assert await rule_of(call, rule, leads="/repo/deploy/key\0") == rule
    assert await rule_of(call, rule, leads="/repo/innocent\0") == ""


async def test_where_the_file_cannot_be_known_a_person_is_asked() -> None:
    """A sandbox that gives no answer, a path that leaves the workspace."""
    rule = "edit_file:deploy/*"
    assert await rule_of(asked_for("edit_file", path="x", old="", new=""), rule) == rule
    assert await rule_of(asked_for("edit_file", path="../x", old="", new=""), rule) == rule


@pytest.mark.parametrize("text", ["", " ", "run:", ":x", "mcp:", "r" * 400])
def test_what_is_no_rule_is_refused(text: str) -> None:
    """Before a run could go on as if it were none."""
    with pytest.raises(ConfigError, match="TOOL:PATTERN"):
        parse_rule(text)


@pytest.mark.parametrize(
    ("rule", "tool", "names"),
    [
        ("mcp:tracker", "mcp:tracker/close", True),
        ("mcp:tracker/*", "mcp:tracker/close", True),
        ("mcp:tracker/close", "mcp:tracker/open", False),
        ("mcp:tracker", "mcp:trackers/close", False),
    ],
)
def test_the_tools_of_a_server_are_named_together(rule: str, tool: str, *, names: bool) -> None:
    """Or one by one; the colon of the prefix divides nothing."""
    assert parse_rule(rule).names(tool) is names


@pytest.mark.parametrize("rule", ["*", "mcp:git", "mcp:git/push", "mcp:*"])
def test_a_rule_that_the_gateway_would_not_keep_is_refused(rule: str) -> None:
    """Tools of a connection run without us."""
    with pytest.raises(ConfigError, match="without asking"):
        check_rules([rule], ["git"])
    check_rules([rule], [], ["git"])


@pytest.mark.parametrize(
    ("rule", "hint"),
    [
        ("edit_fle:*", "Did you mean `edit_file`"),
        ("edit_fle", "Did you mean `edit_file`"),
        ("shell_*", "no tool"),
        ("mcp:trakcer/*", "Did you mean `tracker`"),
        ("mcp:trakcer", "MCP server"),
    ],
)
def test_a_rule_that_no_tool_answers_to_is_refused(rule: str, hint: str) -> None:
    """A misspelled one would guard nothing, and nobody would know."""
    with pytest.raises(ConfigError, match="guards nothing") as refusal:
        check_rules([rule], [], ["tracker"])
    assert hint in str(refusal.value)


@pytest.mark.parametrize(
    "rule", ["*:*.toml", "edit_*", "search_files", "mcp:tracker/close", "mcp:*", "m*"]
)
def test_a_rule_may_be_about_tools_of_any_surface_or_server(rule: str) -> None:
    """Patterns need only match one of them."""
    check_rules([rule], [], ["tracker"])


async def events_of(client: ScriptedModelClient, person: Person, *rules: str) -> list[object]:
    """Run the loop of the shell surface under these rules."""
    sandbox = person.sandbox or ScriptedSandbox({"a.py": "x"}, run_id=RUN)
    config = AgentConfig(approvals=rules)
    strategy = LoopStrategy(client, sandbox, config, FrozenClock(), approver=person)
    brief = Brief(RUN, "Fix it.", "shell", None, None)
    return [event async for event in strategy.run(brief)]


@pytest.mark.cases
async def test_both_of_two_calls_are_answered_where_one_is_refused() -> None:
    """In order, the refused one with the person's words; the other is carried out."""
    sandbox = ScriptedSandbox({"a.py": "x"}, run_id=RUN)
    sandbox.answer("make", result(b"built"))
    client = ScriptedModelClient(
        Turn(calls=(Call("run", {"command": "git push"}), Call("run", {"command": "make"}))),
        Turn(calls=(Call("finish", {"summary": "Done."}),)),
    )
    person = Person(False, True, note="Never push.", sandbox=sandbox)
    events = await events_of(client, person, "run")
    order = [
        type(event)
        for event in events
        if isinstance(event, ApprovalAsked | ApprovalGiven | ToolCallIntended | ToolCallDone)
    ]
    once = [ApprovalAsked, ApprovalGiven, ToolCallIntended, ToolCallDone]
    assert order == [*once, *once, ToolCallIntended, ToolCallDone]
    assert person.frozen == [True, True]
    told = [m.content for m in client.requests[-1].messages if isinstance(m, ToolMessage)]
    assert "ann refused it: Never push." in told[0]
    assert "built" in told[1]
    assert [c.subject for c in sandbox.calls if c.subject in {"git push", "make"}] == ["make"]
    assert isinstance(events[-1], LoopEnded)
    assert events[-1].outcome == "answered"


async def test_where_nobody_is_there_the_model_is_told_how_it_could_be_allowed() -> None:
    """The run goes on without the call."""
    asked = ApprovalAsked(1, asked_for("run", command="ls"), "run")
    given = await Unattended().decide(asked)
    assert not given.allowed
    output = refused(given)
    assert output.is_error
    assert "--approve 'run'" in output.text
