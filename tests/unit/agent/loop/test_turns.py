"""What a reply means, and what follows from it."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.unit.agent.workshop import RUN, Workshop

from turnout.agent.base import AgentConfig, Brief, StepConfig
from turnout.agent.loop import LoopStrategy
from turnout.agent.loop.state import Role
from turnout.core.events import (
    Event,
    LoopEnded,
    PlanUpdated,
    ToolCallIntended,
)
from turnout.core.messages import UserMessage
from turnout.testing.clock import FrozenClock
from turnout.testing.model_client import ScriptedModelClient
from turnout.testing.sandbox import ScriptedSandbox
from turnout.testing.turns import Call, Turn

READ = Call("read_file", {"path": "a.py"})
EDIT = Call("edit_file", {"path": "a.py", "old": "x = 1", "new": "x = 2"})
BAD_EDIT = Call("edit_file", {"path": "a.py", "old": "y = 1", "new": "y = 2"})
FINISH = Call("finish", {"summary": "Fixed."})
PATCH = Call("apply_patch", {"diff": "--- a/a.py\n+++ b/a.py\n@@ @@\n-x = 1\n+x = 2\n"})
GUIDE = Workshop()
SHELL = Workshop(surface="shell")


@pytest.mark.cases
@pytest.mark.parametrize(
    "written",
    [
        '<tool_call>{"name": "run_tests", "arguments": {}}</tool_call>',
        "I run them.\n<function=run_tests><parameter=selector>x</parameter></function>",
        '[TOOL_CALLS] [{"name": "run_tests", "arguments": {}}]',
        '```json\n{"name": "run_tests", "arguments": {}}\n```',
        'I run them now:\n```json\n{"name": "run_tests", "arguments": {}}\n```',
        '{"name": "run_tests", "arguments": {}}',
        '<think>\n<tool_call>{"name": "run_tests"}</tool_call></think>',
        '<think>It is "x".</think>\n<tool_call>{"name": "run_tests"}</tool_call>',
    ],
)
async def test_a_call_written_as_text_is_neither_run_nor_an_answer(written: str) -> None:
    """The model is told to make it a real one."""
    client = ScriptedModelClient(Turn(written), Turn("Done."))
    run = await GUIDE.work(client)
    assert (run.end.outcome, run.end.answer) == ("answered", "Done.")
    assert not run.sandbox.commands
    nudge = client.asked("act")[1].messages[-1]
    assert isinstance(nudge, UserMessage)
    assert "as text" in nudge.content


@pytest.mark.cases
@pytest.mark.parametrize(
    "prose",
    [
        "The parser took `<tool_call>` for a tag; it is escaped now.",
        'It printed this:\n```\n<tool_call>{"name": "run"}</tool_call>\n```\nNow it does not.',
        'The file holds {"name": "run_tests"} as it should.',
        '```json\n{"name": "turnout", "version": 2}\n```',
    ],
)
async def test_prose_may_quote_a_call(prose: str) -> None:
    """It is an answer, and nothing in it is run."""
    run = await GUIDE.work(ScriptedModelClient(Turn(prose)))
    assert (run.end.outcome, run.end.answer) == ("answered", prose)
    assert not run.sandbox.commands


@pytest.mark.cases
@pytest.mark.parametrize("thought", ["<think>I am done.</think>", "<think>I am", "<thinking>x"])
async def test_thoughts_are_no_answer(thought: str) -> None:
    """A reply of nothing else is nudged; beside an answer they are not part of it."""
    run = await GUIDE.work(ScriptedModelClient(Turn(thought), Turn("<think>So.</think> Done.")))
    assert (run.end.outcome, run.end.answer) == ("answered", "Done.")


@pytest.mark.cases
async def test_finish_beside_a_call_that_failed_ends_nothing() -> None:
    """The model has not seen the failure; both calls have results and it goes on."""
    client = ScriptedModelClient(
        Turn(calls=(BAD_EDIT, FINISH)), Turn(calls=(EDIT,)), Turn(calls=(FINISH,))
    )
    run = await SHELL.work(client)
    assert run.results[1].startswith("Not finished")
    assert (run.end.outcome, run.text("a.py")) == ("answered", "x = 2\n")
    assert len(client.asked("act")) == 3


async def test_the_plan_goes_on_as_its_items_are_named() -> None:
    """The model's own marks move it, and the answer ends what is under way."""
    client = ScriptedModelClient(
        Turn("[1] I read it.", (READ,)),
        Turn("[2] and then [2]", (READ,)),
        Turn("[9] No such item. Done."),
        others={"plan": Turn("1. Read a.py\n2. Change it\nDone when: x is 2")},
    )
    run = await GUIDE.work(client)
    states = [event.states for event in run.events if isinstance(event, PlanUpdated)]
    assert states == [("under_way", "open"), ("done", "under_way"), ("done", "done")]


PINNED = replace(
    GUIDE,
    config=AgentConfig(tool_steps={"apply_patch": StepConfig("quality", "coding", 800, None, "m")}),
)


async def test_a_tool_can_have_a_step_of_its_own() -> None:
    """It is declared there alone, and there the call is made as the settings say."""
    client = ScriptedModelClient(
        Turn(calls=(READ,)),
        Turn("x must be 2."),
        Turn(calls=(PATCH,)),
        Turn(calls=(Call("run_tests"),)),
        Turn("Fixed."),
        Turn("Nothing is left."),
    )
    run = await PINNED.work(client)
    assert (run.end.outcome, run.text("a.py")) == ("answered", "x = 2\n")
    asked = [([t.name for t in r.tools], r.model, r.max_tokens) for r in client.asked("act")]
    others = (["list_files", "read_file", "run_tests"], "auto", 4_000)
    alone = (["apply_patch"], "m", 800)
    assert asked == [others, others, alone, others, others, alone]
    assert run.end.answer == "Nothing is left."
    assert "apply_patch alone" in client.asked("act")[0].messages[-1].content


async def test_an_answer_right_after_the_tool_is_the_answer() -> None:
    """The tool is not offered again where nothing came between."""
    client = ScriptedModelClient(Turn("x must be 2."), Turn(calls=(PATCH,)), Turn("Fixed."))
    run = await PINNED.work(client)
    assert (run.end.outcome, run.end.answer) == ("answered", "Fixed.")


TWO = replace(
    GUIDE,
    config=AgentConfig(
        tool_steps={
            "apply_patch": StepConfig("quality", max_tokens=800, model="m"),
            "run_tests": StepConfig("cost", max_tokens=90),
        }
    ),
)


@pytest.mark.parametrize(
    ("said", "carried"),
    [
        (["x must be 2; apply_patch it."], ["apply_patch"]),
        (["I use run_tests to see."], ["run_tests"]),
        (["x must be 2.", "run_tests, then."], ["", "run_tests"]),
        (["x must be 2.", "I meant nothing."], [""]),
        (["Let me rerun_tests_now."], [""]),
    ],
)
async def test_of_several_tools_with_steps_of_their_own_the_named_one_is_carried(
    said: list[str], carried: list[str]
) -> None:
    """The model is asked once which it means, where it names none; then its text is the answer."""
    client = ScriptedModelClient(Turn(calls=(READ,)), *map(Turn, said), Turn("Done."))
    run = await TWO.work(client)
    assert run.end.outcome == "answered"
    asked = client.asked("act")
    assert "each of run_tests, apply_patch alone" in asked[0].messages[-1].content
    after = [[t.name for t in request.tools] for request in asked[2:]]
    ordinary = ["list_files", "read_file"]
    assert after == [[name] if name else ordinary for name in carried]
    limits = {"apply_patch": ("m", 800), "run_tests": ("auto", 90), "": ("auto", 4_000)}
    assert [(r.model, r.max_tokens) for r in asked[2:]] == [limits[name] for name in carried]
    if not carried[0]:
        assert asked[2].messages[-1].content.startswith("Name what you call next")


async def test_one_tool_may_follow_the_other() -> None:
    """An account of what was done names the newest call too, and is no wish to repeat it."""
    client = ScriptedModelClient(
        Turn("I apply_patch now."),
        Turn(calls=(PATCH,)),
        Turn("apply_patch went through; run_tests next."),
        Turn(calls=(Call("run_tests"),)),
        Turn("Fixed."),
    )
    run = await TWO.work(client)
    assert (run.end.outcome, run.end.answer) == ("answered", "Fixed.")
    assert intended(run.events) == ["apply_patch", "run_tests"]


async def test_a_review_has_no_steps_for_one_tool() -> None:
    """What act steps are configured to do is not its own: all its tools are declared at once."""
    client = ScriptedModelClient(others={"review": Turn('{"verdict": "approve"}')})
    config = AgentConfig(tool_steps={"read_file": StepConfig("quality")})
    sandbox = ScriptedSandbox({"a.py": "x = 1\n"}, run_id=RUN)
    role = Role("review", "review-1")
    strategy = LoopStrategy(client, sandbox, config, FrozenClock(), role)
    events = [event async for event in strategy.run(Brief(RUN, "Look.", "review", None, None))]
    assert isinstance(events[-1], LoopEnded)
    assert events[-1].outcome == "answered"
    assert [len(request.tools) for request in client.requests] == [3]


def intended(events: Sequence[Event]) -> list[str]:
    """Return the names of the tools of the calls that were begun."""
    return [event.call.name for event in events if isinstance(event, ToolCallIntended)]
