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
    ModelCallIntended,
    PlanUpdated,
    ToolCallDone,
    ToolCallIntended,
)
from turnout.core.messages import ToolMessage, UserMessage
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


async def resumed(record: Sequence[Event], *turns: Turn) -> tuple[list[Event], ScriptedModelClient]:
    """Go on from a record and return what follows."""
    client = ScriptedModelClient(*turns)
    sandbox = ScriptedSandbox({"a.py": "x = 1\n"}, run_id=RUN)
    strategy = LoopStrategy(client, sandbox, AgentConfig(), FrozenClock())
    brief = Brief(RUN, "Fix a.py.", "shell", "pytest", None, ("test_a.py",))
    return [event async for event in strategy.run(brief, record)], client


ALL = Turn(calls=(READ, EDIT, Call("run", {"command": "ls"})))


async def whole_record() -> list[Event]:
    """Return the record of a run of two steps."""
    run = await SHELL.work(ScriptedModelClient(ALL, Turn("So."), Turn(calls=(FINISH,))))
    return list(run.events)


@pytest.mark.cases
async def test_a_run_goes_on_from_wherever_its_record_ends() -> None:
    """Every history is valid, what was answered is not done again, and the end is the same."""
    record = await whole_record()
    for end in range(len(record)):
        part = record[:end]
        made = {e.result.call_id for e in part if isinstance(e, ToolCallDone)}
        left = [ALL, Turn("So."), Turn(calls=(FINISH,))][_replies(part) :]
        events, client = await resumed(part, *left, Turn(calls=(FINISH,)))
        last = events[-1]
        assert isinstance(last, LoopEnded), end
        assert last.outcome == "answered", end
        again = [e.call.id for e in events if isinstance(e, ToolCallIntended)]
        assert made.isdisjoint(again), end
        for request in client.asked("act"):
            told = [m.tool_call_id for m in request.messages if isinstance(m, ToolMessage)]
            assert len(told) == len(set(told)), end


def _replies(record: Sequence[Event]) -> int:
    return sum(e.type == "model_call_done" and e.kind == "act" for e in record)


@pytest.mark.cases
async def test_a_write_that_was_under_way_is_not_made_again() -> None:
    """Its result says that it was interrupted; calls that were never begun are made."""
    record = await whole_record()
    at = next(
        n
        for n, e in enumerate(record)
        if isinstance(e, ToolCallIntended) and e.call.name != "read_file"
    )
    events, _ = await resumed(record[: at + 1], Turn(calls=(FINISH,)))
    results = [event.result for event in events if isinstance(event, ToolCallDone)]
    assert results[0].is_error
    assert results[0].content.startswith("Interrupted")
    assert not results[1].is_error
    assert intended(events) == ["run", "finish"]


async def test_what_was_said_and_not_judged_is_judged_first() -> None:
    """A text that came just before a crash gets its nudge, not a second call after it."""
    record = await whole_record()
    said = [n for n, event in enumerate(record) if event.type == "model_call_done"][2]
    events, client = await resumed(record[: said + 1], Turn(calls=(FINISH,)))
    first = next(event for event in events if isinstance(event, ModelCallIntended))
    assert [type(message) for message in first.messages] == [UserMessage]
    assert len(client.asked("act")) == 1
