"""What ends a run that would go on, and what does not."""

import asyncio
from dataclasses import replace
from itertools import count

import pytest
from tests.unit.agent.workshop import Workshop

from turnout.agent.base import AgentConfig
from turnout.core.inference import ModelReply, ModelRequest, StepKind
from turnout.core.money import Micros
from turnout.sandbox.base import Command, CommandResult
from turnout.testing.model_client import ScriptedModelClient
from turnout.testing.sandbox import ScriptedSandbox, result
from turnout.testing.turns import Call, Turn

FINISH = Turn(calls=(Call("finish", {"summary": "Done."}),))
SHELL = Workshop(surface="shell")


def runs(*commands: str) -> Turn:
    """Return a turn that runs commands."""
    return Turn(calls=tuple(Call("run", {"command": command}) for command in commands))


async def test_polling_lives_as_long_as_something_changes() -> None:
    """The same command with another result each time is work."""
    numbers = count()

    def progress(_: Command) -> CommandResult:
        return result(b"%d of 12 built" % next(numbers))

    def script(sandbox: ScriptedSandbox) -> None:
        sandbox.answer("status", progress)

    client = ScriptedModelClient(*[runs("status")] * 12, FINISH)
    run = await replace(SHELL, script=script).work(client)
    assert run.end.outcome == "answered"


async def test_the_same_failure_is_stuck_whatever_was_asked() -> None:
    """Other arguments that fail in the same way are no progress."""
    edits = [
        Turn(calls=(Call("edit_file", {"path": f"{n}.py", "old": "x", "new": "y"}),))
        for n in range(20)
    ]
    run = await SHELL.work(ScriptedModelClient(*edits))
    assert run.end.outcome == "stuck"
    assert len(run.results) < 10


async def test_changes_that_undo_one_another_are_stuck() -> None:
    """A, B, A, B: each changes something, and nothing comes of it."""
    there = Turn(calls=(Call("edit_file", {"path": "a.py", "old": "1", "new": "2"}),))
    back = Turn(calls=(Call("edit_file", {"path": "a.py", "old": "2", "new": "1"}),))
    run = await SHELL.work(ScriptedModelClient(*[there, back] * 10))
    assert run.end.outcome == "stuck"
    assert len(run.results) < 10


@pytest.mark.parametrize(
    ("config", "outcome", "reason"),
    [
        (AgentConfig(max_tool_calls=4), "step_limit", "4 tool calls"),
        (AgentConfig(max_steps=3), "step_limit", "3 steps"),
        (AgentConfig(max_spend=Micros(300)), "capped", "has spent"),
        (AgentConfig(max_seconds=0.0), "capped", "seconds are over"),
    ],
)
async def test_every_cap_ends_the_run_by_name(
    config: AgentConfig, outcome: str, reason: str
) -> None:
    """The work so far stays."""
    turns = [runs(f"a {n}", f"b {n}") for n in range(9)]
    edit = Turn(calls=(Call("edit_file", {"path": "a.py", "old": "1", "new": "2"}),))
    run = await replace(SHELL, config=config).work(ScriptedModelClient(edit, *turns))
    assert (run.end.outcome, reason in run.end.reason) == (outcome, True)
    assert run.text("a.py") == "x = 2\n"


@pytest.mark.cases
@pytest.mark.parametrize("kind", ["plan", "act"])
async def test_a_model_that_never_answers_does_not_outlast_the_run(kind: StepKind) -> None:
    """The call is given up when the run's time is over, which is how the run ends."""

    class Silent(ScriptedModelClient):
        async def call(self, request: ModelRequest) -> ModelReply:
            if request.call_kind == kind:
                await asyncio.Event().wait()
            return await super().call(request)

    workshop = replace(SHELL, config=AgentConfig(max_seconds=0.05))
    end = (await workshop.work(Silent(FINISH))).end
    assert end.outcome == "capped"
    assert end.reason == "The run's 0.05 seconds are over. Raise `max_seconds` for more."


@pytest.mark.cases
async def test_replies_that_lead_to_nothing_are_paid_for() -> None:
    """A cap of the spend holds for them too."""
    config = AgentConfig(max_spend=Micros(250))
    run = await replace(SHELL, config=config).work(ScriptedModelClient(Turn(""), Turn("")))
    assert run.end.outcome == "capped"
