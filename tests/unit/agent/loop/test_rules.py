"""Caps, circles and the plan, over whole runs of the loop."""

from dataclasses import replace

import pytest
from tests.unit.agent.workshop import Workshop

from turnout.agent.base import AgentConfig
from turnout.agent.loop.planning import finished, parse_plan, progressed
from turnout.agent.loop.rules import judge
from turnout.agent.loop.state import LoopState
from turnout.agent.tools.surfaces import SURFACES
from turnout.core.events import LoopEnded, PlanMade, PlanUpdated
from turnout.core.money import Micros
from turnout.testing.model_client import ScriptedModelClient
from turnout.testing.sandbox import result
from turnout.testing.turns import Call, Turn

FINISH = Turn(calls=(Call("finish", {"summary": "Fixed."}),))
SHELL = Workshop(surface="shell")


def runs(command: str) -> Turn:
    """Return a turn that runs a command."""
    return Turn(calls=(Call("run", {"command": command}),))


async def test_the_cap_on_tool_calls_ends_the_run() -> None:
    """Whatever number of steps they were made in."""
    many = Turn(calls=tuple(Call("run", {"command": f"echo {n}"}) for n in range(5)))
    workshop = replace(SHELL, config=AgentConfig(max_tool_calls=5))
    end = (await workshop.work(ScriptedModelClient(many))).end
    assert (end.outcome, end.reason) == ("step_limit", "The limit of 5 tool calls was reached.")


async def test_the_cap_on_spend_ends_the_run() -> None:
    """By what is known of its cost, the call that reached it included."""
    workshop = replace(SHELL, config=AgentConfig(max_spend=Micros(0)))
    end = (await workshop.work(ScriptedModelClient(runs("ls")))).end
    assert end.outcome == "capped"
    assert "spent" in end.reason


def test_the_cap_on_time_ends_the_run() -> None:
    """Between steps, with the work so far."""
    state, config = LoopState(SURFACES["shell"]), AgentConfig(max_seconds=60.0)
    assert judge(state, config, 59.0) is None
    end = judge(state, config, 60.0)
    assert isinstance(end, LoopEnded)
    assert end.outcome == "capped"
    assert end.reason == "The run's 60 seconds are over. Raise `max_seconds` for more."


@pytest.mark.cases
async def test_polling_whose_output_changes_lives() -> None:
    """The same command over and over is work as long as something comes of it."""
    answers = [result(f"{n} of 9 done".encode()) for n in range(10)]
    workshop = replace(SHELL, script=lambda sandbox: sandbox.answer("status", *answers))
    client = ScriptedModelClient(*[runs("status")] * 9, FINISH)
    run = await workshop.work(client)
    assert run.end.outcome == "answered"
    assert not any(
        "try something else" in message.content
        for request in client.asked("act")
        for message in request.messages
        if message.role == "user"
    )


@pytest.mark.cases
@pytest.mark.parametrize(
    "calls",
    [
        [Call("edit_file", {"path": "a.py", "old": f"no {n}", "new": "y"}) for n in range(8)],
        [Call(f"look_{'abcdefgh'[n] * n}", {}) for n in range(8)],
    ],
    ids=["one tool", "tools that there are not"],
)
async def test_failing_in_one_way_over_and_over_is_stuck(calls: list[Call]) -> None:
    """Whatever is asked for each time: five failures bring a nudge, a sixth the end."""
    client = ScriptedModelClient(*(Turn(calls=(call,)) for call in calls))
    run = await SHELL.work(client)
    assert run.end.outcome == "stuck"
    assert len(client.asked("act")) == 6


async def test_a_plan_is_a_list_with_a_condition() -> None:
    """However it is marked up; what is no item is left in the text."""
    plan = parse_plan("Plan:\n1. Read a.py.\n**2.** Fix `f`.\n3) Test.\nDone when: test_f passes.")
    assert plan.steps == ("Read a.py.", "Fix `f`.", "Test.")
    assert plan.success == "test_f passes."
    assert parse_plan("Look at a.py.").steps == ()


async def test_the_plan_is_followed_by_what_the_model_says() -> None:
    """An item that is named is under way and those before it are done; the end ends it."""
    turns = [
        replace(runs("a"), text="[1] Reading."),
        replace(runs("b"), text="Still."),
        replace(runs("c"), text="[2] Fixing; [7] is no item."),
        FINISH,
    ]
    client = ScriptedModelClient(*turns, others={"plan": Turn("1. Read.\n2. Fix.\n3. Test.")})
    run = await SHELL.work(client)
    states = [event.states for event in run.events if isinstance(event, PlanUpdated)]
    assert states == [
        ("under_way", "open", "open"),
        ("done", "under_way", "open"),
        ("done", "done", "open"),
    ]


def test_a_plan_without_marks_is_not_guessed_at() -> None:
    """No update is made up where the model names no item."""
    plan = PlanMade("1. a", ("a",))
    assert progressed(plan, None, "Working on it.") is None
    assert progressed(PlanMade("words"), None, "[1]") is None
    assert finished(None) is None
    assert finished(PlanUpdated(("done", "open"))) is None
