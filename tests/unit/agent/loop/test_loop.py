"""How a run goes on and how it ends."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.unit.agent.workshop import Workshop

from turnout.agent.base import AgentConfig
from turnout.agent.tools.bounds import BOUNDS
from turnout.agent.wire import encode_request
from turnout.core.events import (
    ModelCallFailed,
    ModelCallIntended,
    Notice,
    PlanMade,
    StepStarted,
    ToolCallDone,
    ToolCallIntended,
)
from turnout.core.messages import ToolMessage, UserMessage
from turnout.errors import SandboxDiedError
from turnout.sandbox.base import Blob, Command, CommandResult
from turnout.testing.model_client import ScriptedModelClient
from turnout.testing.recorded import history_faults
from turnout.testing.sandbox import ScriptedSandbox, result
from turnout.testing.turns import Call, Refusal, Turn

READ = Call("read_file", {"path": "a.py"})
FINISH = Turn(calls=(Call("finish", {"summary": "Fixed."}),))
SHELL = Workshop(surface="shell")
GUIDE = Workshop()


def prints(output: bytes) -> Callable[[ScriptedSandbox], None]:
    """Let every command fail and print this."""
    return lambda sandbox: sandbox.answer("", result(output, code=1))


async def test_a_text_answers_where_no_finish_is_declared() -> None:
    """Guide surface: plan, a tool step, the answer; every call asks for what its kind is."""
    client = ScriptedModelClient(Turn(calls=(READ,)), Turn("The bug was x."))
    run = await GUIDE.work(client)
    assert (run.end.outcome, run.end.answer) == ("answered", "The bug was x.")
    assert run.results == ["x = 1\n"]
    asked = [(r.call_kind, r.routing.optimize, r.routing.task) for r in client.requests]
    assert asked == [("plan", "quality", "coding"), *[("act", "latency", "coding")] * 2]
    assert {request.routing.session for request in client.requests} == {"run-000000000001"}
    assert [tool.name for tool in client.requests[1].tools] == [
        "list_files",
        "read_file",
        "run_tests",
        "apply_patch",
    ]


async def test_the_plan_opens_the_work() -> None:
    """The plan is on record and in the first message of the act steps."""
    client = ScriptedModelClient(Turn("Done."), others={"plan": Turn("Look at a.py first.")})
    run = await GUIDE.work(client)
    assert PlanMade("Look at a.py first.") in run.events
    assert "Look at a.py first." in client.asked("act")[0].messages[1].content


async def test_finish_answers_where_it_is_declared() -> None:
    """Shell surface: the summary is the answer, and the call has its result."""
    run = await SHELL.work(ScriptedModelClient(FINISH))
    assert (run.end.outcome, run.end.answer) == ("answered", "Fixed.")
    assert isinstance(run.events[-2], ToolCallDone)


@pytest.mark.cases
@pytest.mark.parametrize(
    "idle",
    [
        Turn(""),
        Turn(reasoning="Let me think."),
        Turn("I was cut in the mid", finish_reason="length"),
        Turn("I was stopped", finish_reason="content_filter"),
        Turn('<tool_call>{"name": "read_file", "arguments": {"path": "a.py"}}</tool_call>'),
        Turn('```json\n{"name": "read_file", "arguments": {"path": "a.py"}}\n```'),
    ],
)
@pytest.mark.parametrize("surface", [GUIDE, SHELL])
async def test_a_reply_that_says_nothing_is_nudged_twice(surface: Workshop, idle: Turn) -> None:
    """It is never taken for success: two nudges, then the run has failed."""
    client = ScriptedModelClient(idle, idle, idle)
    run = await surface.work(client)
    assert run.end.outcome == "failed"
    assert all(isinstance(r.messages[-1], UserMessage) for r in client.asked("act")[1:])


@pytest.mark.cases
async def test_text_is_nudged_where_finish_is_declared() -> None:
    """A model that thinks aloud is told to go on, and a tool call makes good for it."""
    thinking = Turn("I will now edit the file.")
    client = ScriptedModelClient(thinking, thinking, Turn(calls=(READ,)), thinking, FINISH)
    assert (await SHELL.work(client)).end.outcome == "answered"


@pytest.mark.cases
async def test_a_cut_call_is_never_executed() -> None:
    """Even whole-looking calls of a cut reply get an error result, and nothing is run."""
    write = Call("edit_file", {"path": "new.py", "old": "", "new": "half"})
    cut = Turn(calls=(write, Call("run", '{"command": "rm')), finish_reason="length")
    run = await SHELL.work(ScriptedModelClient(cut, FINISH))
    assert "new.py" not in run.sandbox.files
    assert not run.sandbox.commands
    assert all("cut off" in result for result in run.results[:2])


@pytest.mark.parametrize(
    ("refusal", "outcome"),
    [
        (Refusal(403, "The tool `apply_patch` is not allowed.", "tool_not_allowed"), "refused"),
        (Refusal(402, "The session has spent $2.00.", "session_spend_cap"), "capped"),
        (Refusal(429, "The session has made 3 requests.", "session_request_cap"), "capped"),
        (Refusal(429, "Slow down.", "rate_limit"), "capped"),
        (Refusal(500, "Oops.", "server_error"), "failed"),
    ],
)
@pytest.mark.parametrize("kind", ["plan", "act"])
async def test_a_refusal_of_the_gateway_names_the_outcome(
    refusal: Refusal, outcome: str, kind: str
) -> None:
    """The reason carries the gateway's message, and work so far stays."""
    client = ScriptedModelClient(Turn(calls=(READ,)), refusal)
    if kind == "plan":
        client = ScriptedModelClient(others={"plan": refusal})
    run = await GUIDE.work(client)
    assert run.end.outcome == outcome
    assert refusal.message in run.end.reason
    failed = next(event for event in run.events if isinstance(event, ModelCallFailed))
    assert (failed.kind, failed.status) == (kind, refusal.status)


async def test_the_step_limit_ends_the_run() -> None:
    """Act steps are counted, the plan is not."""
    turns = [Turn(calls=(Call("read_file", {"path": f"{n}.py"}),)) for n in range(3)]
    workshop = Workshop(config=AgentConfig(max_steps=3))
    end = (await workshop.work(ScriptedModelClient(*turns))).end
    assert (end.outcome, end.reason) == ("step_limit", "The limit of 3 steps was reached.")


async def test_one_step_is_no_steps() -> None:
    """The reason is for people."""
    one = Workshop(config=AgentConfig(max_steps=1))
    end = (await one.work(ScriptedModelClient(Turn(calls=(READ,))))).end
    assert end.reason == "The limit of 1 step was reached."


async def test_the_same_call_with_the_same_result_is_nudged_then_stuck() -> None:
    """Three times bring a nudge, a fourth the end."""
    client = ScriptedModelClient(*[Turn(calls=(READ,))] * 4)
    run = await GUIDE.work(client)
    assert run.end.outcome == "stuck"
    nudge = client.asked("act")[3].messages[-1]
    assert isinstance(nudge, UserMessage)
    assert "try something else" in nudge.content


async def test_alternating_calls_are_stuck_too() -> None:
    """Two commands taking turns change nothing either."""
    turns = [Turn(calls=(Call("run", {"command": c}),)) for c in "abababab"]
    assert (await SHELL.work(ScriptedModelClient(*turns))).end.outcome == "stuck"


async def test_a_test_run_repeated_after_changes_is_no_repetition() -> None:
    """Between two equal test runs something was changed, so the model is working."""
    test = Turn(calls=(Call("run", {"command": "pytest"}),))
    edits = [
        Turn(calls=(Call("edit_file", {"path": "a.py", "old": f"x = {n}", "new": f"x = {n + 1}"}),))
        for n in range(1, 6)
    ]
    turns = [turn for edit in edits for turn in (test, edit)]
    assert (await SHELL.work(ScriptedModelClient(*turns, FINISH))).end.outcome == "answered"


@pytest.mark.cases
async def test_every_call_of_a_turn_gets_its_result_in_order() -> None:
    """Broken, unknown, failing and repeated calls all get one, and the others run."""
    calls = (
        Call("read_file", {"path": "missing.py"}, id="1"),
        Call("read_flie", {"path": "a.py"}, id="2"),
        Call("run", "{broken", id="3"),
        Call("read_file", {"path": "a.py"}, id="3"),
        Call("edit_file", {"path": "test_a.py", "old": "", "new": "x"}, id="5"),
        Call("run", {"command": "ls"}, id=""),
    )
    client = ScriptedModelClient(Turn(calls=calls), FINISH)
    run = await SHELL.work(client)
    hints = [
        "No such file",
        "Did you mean `read_file`?",
        "not valid JSON",
        "x = 1",
        "test file",
        "exit",
    ]
    assert all(hint in result for hint, result in zip(hints, run.results[:6], strict=True))
    answered = [m for m in client.asked("act")[1].messages if isinstance(m, ToolMessage)]
    done = next(e for e in run.events if isinstance(e, ToolCallDone))
    assert done.result.call_id == answered[0].tool_call_id
    assert len({message.tool_call_id for message in answered}) == 6


async def test_calls_beyond_what_one_reply_may_make_are_refused() -> None:
    """A flood of calls is bounded, and each of them still has its result."""
    flood = Turn(calls=(Call("run", {"command": "ls"}),) * 34)
    run = await SHELL.work(ScriptedModelClient(flood, FINISH))
    assert len(run.sandbox.commands) == 32
    assert ["at most" in result for result in run.results[-3:]] == [True, True, False]


async def test_a_flood_of_calls_is_cut_where_it_would_fill_the_record() -> None:
    """What stays has a result each; the message that is sent back has no other calls."""
    flood = Turn(calls=(Call("run", {"command": "ls"}),) * 5_000)
    client = ScriptedModelClient(flood, FINISH)
    run = await SHELL.work(client)
    assert len(run.results) == 128 + 1
    sent = json.loads(encode_request(client.asked("act")[1]))["messages"]
    assert not history_faults(sent)
    assert sum(message["role"] == "tool" for message in sent) == 128


async def test_a_plan_without_end_does_not_fill_the_window() -> None:
    """It outlives every condensation, so it is cut."""
    client = ScriptedModelClient(Turn("Done."), others={"plan": Turn("1. Look. " * 50_000)})
    await GUIDE.work(client)
    assert len(client.asked("act")[0].messages[1].content) < 10_000


async def test_what_follows_finish_in_its_turn_is_not_run() -> None:
    """The task has ended; the call still gets a result."""
    both = Turn(calls=(*FINISH.calls, Call("run", {"command": "ls"})))
    run = await SHELL.work(ScriptedModelClient(both))
    assert run.end.outcome == "answered"
    assert "has ended the task" in run.results[1]
    assert not run.sandbox.commands


async def test_reads_of_a_turn_run_at_the_same_time() -> None:
    """Neighbouring reads wait for one another here, which only works side by side."""
    meeting = asyncio.Barrier(3)

    class Slow(ScriptedSandbox):
        async def read(self, path: str, *, offset: int = 0, limit: int = 1 << 20) -> Blob:
            await asyncio.wait_for(meeting.wait(), 5)
            return await super().read(path, offset=offset, limit=limit)

    workshop = Workshop(files={f"{n}.py": "x" for n in range(3)}, sandbox=Slow)
    reads = tuple(Call("read_file", {"path": f"{n}.py"}) for n in range(3))
    run = await workshop.work(ScriptedModelClient(Turn(calls=reads), Turn("Done.")))
    assert run.results == ["x", "x", "x"]
    kinds = [type(e) for e in run.events if isinstance(e, ToolCallIntended | ToolCallDone)]
    assert kinds == [ToolCallIntended] * 3 + [ToolCallDone] * 3


@pytest.mark.cases
async def test_two_edits_of_one_turn_both_land() -> None:
    """Writes run one after the other, so none is lost."""
    edits = tuple(
        Call("edit_file", {"path": "n.txt", "old": f"\n{n}\n", "new": f"\n<{n}>\n"})
        for n in (50, 75)
    )
    numbers = "".join(f"{n}\n" for n in range(1, 101))
    workshop = replace(SHELL, files={"n.txt": numbers})
    run = await workshop.work(ScriptedModelClient(Turn(calls=edits), FINISH))
    assert "\n<50>\n" in run.text("n.txt")
    assert "\n<75>\n" in run.text("n.txt")


async def test_a_long_output_is_summarised_with_its_end_attached() -> None:
    """The summary is a step of its own at the cost objective, before the call's result."""
    output = "".join(f"line {n}\n" for n in range(2_000)).encode() + b"FAILED test_x\n"
    workshop = replace(SHELL, script=prints(output))
    client = ScriptedModelClient(Turn(calls=(Call("run", {"command": "pytest"}),)), FINISH)
    run = await workshop.work(client)
    (summary,) = client.asked("summary")
    assert (summary.routing.optimize, summary.routing.task) == ("cost", "summarisation")
    assert "FAILED test_x" in summary.messages[1].content
    assert run.results[0].startswith("exit 1\n")
    assert "One test failed." in run.results[0]
    assert run.results[0].endswith("FAILED test_x\n")
    assert len(run.results[0]) <= BOUNDS["shell"].output_cap


@pytest.mark.parametrize("failing", [Refusal(500), Turn(""), Turn("cu", finish_reason="length")])
async def test_a_summary_that_fails_leaves_the_output_cut(failing: Turn | Refusal) -> None:
    """The run goes on with head and tail of what was printed."""
    workshop = replace(SHELL, script=prints(b"y" * 20_000 + b"FAILED"))
    client = ScriptedModelClient(
        Turn(calls=(Call("run", {"command": "pytest"}),)), FINISH, others={"summary": failing}
    )
    run = await workshop.work(client)
    assert run.end.outcome == "answered"
    assert "characters left out" in run.results[0]
    assert run.results[0].endswith("FAILED")


async def test_a_file_is_paged_and_never_summarised() -> None:
    """Long files come in pieces that the model asks for."""
    workshop = Workshop(files={"a.py": "line\n" * 5_000})
    client = ScriptedModelClient(Turn(calls=(READ,)), Turn("Done."))
    run = await workshop.work(client)
    assert not client.asked("summary")
    assert "read on with offset=" in run.results[0]


async def test_a_model_without_a_plan_still_works() -> None:
    """The absence is noted, and the act steps begin."""
    client = ScriptedModelClient(Turn("Done."), others={"plan": Turn(reasoning="hm")})
    run = await GUIDE.work(client)
    assert any(isinstance(event, Notice) for event in run.events)
    assert run.end.outcome == "answered"


async def test_nothing_starts_that_is_not_on_record() -> None:
    """A consumer that stops after an intent has seen everything that was begun."""
    client = ScriptedModelClient(Turn(calls=(Call("run", {"command": "ls"}),)), FINISH)
    seen_calls, seen_commands = [], []
    async for event, sandbox in SHELL.events(client):
        if isinstance(event, ModelCallIntended):
            seen_calls.append(len(client.requests))
        if isinstance(event, ToolCallIntended) and event.call.name == "run":
            seen_commands.append(len(sandbox.commands))
    assert seen_calls == [0, 1, 2]
    assert seen_commands == [0]


async def test_steps_are_numbered_without_gaps() -> None:
    """Plan, act and summary steps share one count."""
    workshop = replace(SHELL, script=prints(b"z" * 9_000))
    client = ScriptedModelClient(Turn(calls=(Call("run", {"command": "x"}),)), FINISH)
    run = await workshop.work(client)
    steps = [(e.step, e.kind) for e in run.events if isinstance(e, StepStarted)]
    assert steps == [(1, "plan"), (2, "act"), (3, "summary"), (4, "act")]
    assert len({request.idempotency_key for request in client.requests}) == 4


async def test_the_death_of_the_sandbox_comes_out() -> None:
    """It is no result of a tool: no model is told."""

    async def work() -> None:
        script = ScriptedModelClient(Turn(calls=(Call("run", {"command": "x"}),)))
        async for event, sandbox in SHELL.events(script):
            if isinstance(event, ToolCallIntended):
                sandbox.die()

    with pytest.raises(SandboxDiedError):
        await work()


async def test_cancellation_passes_through() -> None:
    """A cancelled run stops at once and yields no end of its own."""
    started = asyncio.Event()

    class Stuck(ScriptedSandbox):
        async def run(self, command: Command) -> CommandResult:
            started.set()
            await asyncio.Event().wait()
            return result()

    workshop = replace(SHELL, sandbox=Stuck)
    script = ScriptedModelClient(Turn(calls=(Call("run", {"command": "x"}),)))
    task = asyncio.create_task(workshop.work(script))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
