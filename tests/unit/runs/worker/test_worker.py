"""One run from its base to its verdict, whatever happens on the way."""

import asyncio
import gc
from dataclasses import replace
from datetime import datetime

import pytest
from tests.unit.runs.parts import (
    COMMIT,
    DONE,
    FAILING,
    NO_PATCH,
    PASSING,
    TASK,
    Agent,
    Driver,
    Models,
    Room,
    Suite,
    report_of,
)

from turnout.core.events import (
    ConnectionsAsked,
    Entry,
    Event,
    LoopEnded,
    ModelCallFailed,
    ModelCallIntended,
    Notice,
    RunEnded,
    StepStarted,
    ToolCallDone,
    ToolCallIntended,
)
from turnout.core.ids import RunId, ToolCallId
from turnout.core.runs import Connection
from turnout.core.tasks import Task
from turnout.core.tools import ToolCall, ToolResult
from turnout.errors import (
    ModelUnavailableError,
    SandboxDiedError,
    SandboxUnavailableError,
    StoreError,
    UnfitError,
    UsageError,
)
from turnout.sandbox.repository import Resolved
from turnout.testing.stores import MemoryRecordStore

CALL = ToolCall(ToolCallId("c1"), "run_tests", "{}")
TOOL = (ToolCallIntended(1, CALL), ToolCallDone(1, ToolResult(CALL.id, "ok"), 0.1))


async def test_a_run_is_on_record_in_the_order_in_which_it_happened() -> None:
    """Each fact follows from those before it."""
    room = Room(agent=Agent((StepStarted(1, "act", "latency"), *TOOL, DONE)))
    result = await room.run()
    assert room.types == [
        "run_started",
        "workspace_ready",
        "tests_ran",
        "step_started",
        "tool_call_intended",
        "tool_call_done",
        "loop_ended",
        "patch_made",
        "tests_ran",
        "verdict_given",
        "explained",
        "resources_used",
        "run_ended",
    ]
    assert [entry.seq for entry in room.entries] == list(range(1, 14))
    assert (result.outcome, result.verdict.name) == ("answered", "resolved")
    assert result.explanation == "Counted from 1, not from 0."


async def test_our_own_tests_run_in_sandboxes_that_the_work_never_saw() -> None:
    """Before, work and after have one each; none sees what another left behind."""
    room = Room()
    await room.run()
    before, work, after = (box.did for box in room.driver.boxes)
    assert before == ["tests", "close"]
    assert work == ["kill_all", "diff", "close"]
    assert after == ["apply_patch", "tests", "close"]


async def test_each_connection_is_on_record_once_in_its_place() -> None:
    """After the tool call that asked for it; what comes later follows when the work ends."""
    room = Room()
    first, second = Connection("a.example", 443, True, ""), Connection("b.example", 80, False, "no")

    async def ask() -> None:
        room.driver.asked.append(first)

    async def ask_late() -> None:
        room.driver.asked.append(second)

    room.agent = Agent((TOOL[0], ask, TOOL[1], ask_late, DONE))
    result = await room.run()
    at = room.types.index("tool_call_done")
    assert room.entries[at + 1].event == ConnectionsAsked((first,))
    assert result.connections == (first, second)


async def test_our_own_tests_reach_less_than_the_work() -> None:
    """Secrets and packages are for the model's tools alone."""
    room = Room()
    await room.run()
    assert [box.reaches for box in room.driver.boxes] == [
        "tests.example",
        "work.example",
        "tests.example",
    ]


async def test_the_verdict_is_made_with_what_the_patch_declares() -> None:
    """Its environment is made anew; what was installed by hand during the work is not there."""
    declares = (("pyproject.toml", "numpy"),)
    room = Room(suite=Suite([FAILING, PASSING], declares=declares))
    result = await room.run()
    assert [spec.manifests for spec in room.driver.specs] == [(), declares]
    assert result.verdict.name == "resolved"
    texts = [e.event.text for e in room.entries if isinstance(e.event, Notice)]
    assert any("numpy" in text for text in texts)


async def test_named_requirements_are_not_overruled_by_a_patch() -> None:
    """Who names them means them."""
    room = Room(suite=Suite([FAILING, PASSING], declares=(("pyproject.toml", "numpy"),)))
    await room.run(Task("fix", "/r", requirements=("attrs",)))
    assert len(room.driver.specs) == 1


async def test_a_run_without_walls_says_so() -> None:
    """Whoever reads the record later sees it."""
    result = await Room(driver=Driver(isolation="none")).run()
    assert any("Nothing isolates" in warning for warning in result.warnings)


@pytest.mark.cheats
async def test_a_patch_that_steers_the_tests_otherwise_is_named_so() -> None:
    """What is read before and after the patch is compared, in the sandbox that judges."""
    room = Room(suite=Suite([FAILING, PASSING], steered=("pages.py",)))
    result = await room.run()
    assert (result.verdict.name, result.verdict.touched) == ("tests_touched", ("pages.py",))


async def test_the_explanation_is_the_next_free_step() -> None:
    """Steps are numbered from 1 without gaps over strategy and explanation."""
    room = Room(agent=Agent((StepStarted(3, "act", "latency"), DONE)))
    await room.run()
    assert room.agent.next_step == 4


async def test_an_event_is_committed_before_the_next_is_asked_for() -> None:
    """An intent is durable when its call starts."""
    room = Room()
    seen = []

    async def look() -> None:
        seen.extend(
            e.event.type for e in await room.store.entries((await room.store.rows())[0].run_id)
        )

    room.agent = Agent((TOOL[0], look, TOOL[1], DONE))
    await room.run()
    assert seen[-1] == "tool_call_intended"


@pytest.mark.parametrize("outcome", ["capped", "refused", "failed"])
async def test_a_run_that_was_cut_short_keeps_its_diff_and_asks_no_model(outcome: str) -> None:
    """The patch is judged and described without another model call."""
    room = Room(agent=Agent((LoopEnded(outcome, "Why."),)))
    result = await room.run()
    assert (result.outcome, result.reason) == (outcome, "Why.")
    assert result.patch
    assert result.verdict.name == "resolved"
    assert room.agent.explanations == 0
    assert "pages.py" in result.explanation


async def test_a_repair_is_described_by_facts_alone() -> None:
    """The model behind it is not asked: what was replaced, what passes now, which files."""
    end = LoopEnded("answered", "All tests pass with candidate 2: page in pages.py replaced.")
    room = Room(agent=Agent((end,)), models=Models(strategy="repair"))
    result = await room.run()
    assert room.agent.explanations == 0
    assert result.explanation.split("\n") == [
        end.reason,
        "",
        "- Changed: `pages.py` (modified).",
        "- Failed before, passes now: `t.py::b`.",
        "- Tests: 2 passed, 0 failed (exit 0)",
    ]


@pytest.mark.cases
async def test_without_a_diff_nothing_is_tested_again() -> None:
    """The verdict needs no second run, and the model's answer stands for the explanation."""
    room = Room(driver=Driver(patch=NO_PATCH))
    result = await room.run()
    assert len(room.driver.boxes) == 2
    assert result.verdict.name == "not_resolved"
    assert result.explanation == "It was an off-by-one."


async def test_no_tests_is_a_warning_and_a_verdict_of_its_own() -> None:
    """The run goes on without a judge."""
    result = await Room(suite=Suite([], detected=None)).run()
    assert result.verdict.name == "no_tests"
    assert any("No tests" in warning for warning in result.warnings)


async def test_a_named_test_command_is_not_detected() -> None:
    """What the user names is what runs."""
    room = Room(suite=Suite([FAILING, PASSING], detected=None))
    result = await room.run(Task("fix", "/r", test_command="make test"))
    assert result.workspace.test_command == "make test"


async def test_a_patch_that_does_not_apply_to_its_base_is_not_resolved() -> None:
    """Then nothing can be tested, and the record says so."""
    result = await Room(driver=Driver(applies=False)).run()
    assert result.verdict.name == "not_resolved"
    assert any("hunk 1 failed" in warning for warning in result.warnings)


async def test_a_sandbox_that_dies_ends_the_run_as_failed() -> None:
    """What could be read of the work is kept; it is closed all the same."""
    room = Room(agent=Agent((SandboxDiedError("The sandbox is gone."),)))
    result = await room.run()
    assert result.outcome == "failed"
    assert "The sandbox is gone" in result.reason
    assert result.patch
    assert all(box.did[-1] == "close" for box in room.driver.boxes)


async def test_a_workspace_that_cannot_be_read_costs_the_diff_and_nothing_else() -> None:
    """The run ends in order, with a warning."""
    room = Room(driver=Driver(diff_error=SandboxDiedError("gone")))
    result = await room.run()
    assert not result.patch
    assert any("could not be read" in warning for warning in result.warnings)
    assert room.types[-1] == "run_ended"


async def test_a_strategy_that_falls_silent_is_a_failure() -> None:
    """A run always has an outcome."""
    result = await Room(agent=Agent(())).run()
    assert result.outcome == "failed"


async def test_a_stop_waits_for_the_calls_under_way_and_keeps_the_diff() -> None:
    """Asked for during a tool call, it takes effect when that call has its result."""
    room = Room()

    async def ask() -> None:
        room.stop.ask()

    room.agent = Agent((TOOL[0], ask, TOOL[1], StepStarted(2, "act", "latency"), DONE))
    result = await room.run()
    assert result.outcome == "cancelled"
    assert result.patch
    assert "tool_call_done" in room.types
    assert "step_started" not in room.types
    assert result.verdict.name == "resolved"
    assert room.agent.explanations == 0


async def test_a_stop_waits_likewise_in_a_run_that_goes_on_after_a_crash() -> None:
    """A result for a call that an earlier service had begun opens no way around the wait."""
    room = Room()

    async def ask() -> None:
        room.stop.ask()

    room.agent = Agent((TOOL[1], TOOL[0], ask, TOOL[1], StepStarted(2, "act", "latency"), DONE))
    result = await room.run()
    assert result.outcome == "cancelled"
    assert room.types.count("tool_call_done") == 2
    assert "step_started" not in room.types


async def test_an_urgent_stop_gives_up_the_call_under_way_and_keeps_the_diff() -> None:
    """A model that never answers does not hold the user."""
    room = Room()

    async def hang() -> None:
        room.stop.ask()
        room.stop.ask()
        await asyncio.Event().wait()

    intent = ModelCallIntended(1, "act", "main", "key", "auto", ())
    room.agent = Agent((intent, hang, DONE))
    result = await room.run()
    assert result.outcome == "cancelled"
    assert result.patch
    assert result.verdict is None
    assert all(box.did[-1] == "close" for box in room.driver.boxes)


async def test_a_stop_before_the_work_gives_up_at_once() -> None:
    """There is nothing to keep yet."""
    room = Room()
    room.stop.ask()
    result = await room.run()
    assert result.outcome == "cancelled"
    assert room.driver.boxes == []


async def test_a_run_given_up_from_outside_says_so_on_record_and_closes_its_sandbox() -> None:
    """Cancellation of the task ends the record too."""
    room = Room()
    hanging = asyncio.Event()

    async def hang() -> None:
        hanging.set()
        await asyncio.Event().wait()

    room.agent = Agent((hang,))
    task = asyncio.ensure_future(room.run())
    await hanging.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (row,) = await room.store.rows()
    assert row.outcome == "cancelled"
    assert "patch_made" in [e.event.type for e in await room.store.entries(row.run_id)]
    assert room.driver.boxes[-1].did[-1] == "close"


class FullStore(MemoryRecordStore):
    """Has no room left for the end of a run."""

    async def append(self, run_id: RunId, epoch: int, event: Event, at: datetime) -> Entry:
        """Refuse the end."""
        if isinstance(event, RunEnded):
            raise StoreError("The disk is full.")
        return await super().append(run_id, epoch, event, at)


async def test_an_error_of_a_run_given_up_is_no_noise() -> None:
    """Whoever gave it up has left: nobody is shown a traceback."""
    said: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: said.append(told["message"]))
    hanging = asyncio.Event()

    async def hang() -> None:
        hanging.set()
        await asyncio.Event().wait()

    room = Room(agent=Agent((hang,)), store=FullStore())
    task = asyncio.ensure_future(room.run())
    await hanging.wait()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    del task
    gc.collect()
    assert said == []


async def test_a_defect_of_a_strategy_loses_nothing() -> None:
    """The work so far is on record, the record has its end, and the defect comes out."""
    room = Room(agent=Agent((ZeroDivisionError("by nothing"),)))
    with pytest.raises(ZeroDivisionError):
        await room.run()
    assert room.types[-3:] == ["patch_made", "resources_used", "run_ended"]
    assert (await room.store.rows())[0].outcome == "failed"
    assert room.driver.boxes[-1].did[-1] == "close"


UNSTARTED = report_of(exit_code=127, found=False, output="sh: 1: pytes: not found\n")


async def test_a_test_command_that_was_named_and_is_not_there_ends_a_run_before_any_model() -> None:
    """A misspelled one must not pass for a repository without tests."""
    room = Room(suite=Suite([UNSTARTED]))
    with pytest.raises(UnfitError, match=r"`pytest -q` was not found .* sh: 1: pytes: not found"):
        await room.run(Task("fix", "/r", test_command="pytes -q"))
    assert room.agent.briefs == []
    assert room.types[-1] == "run_ended"


@pytest.mark.parametrize("code", [1, 127])
async def test_a_named_test_command_whose_tests_were_heard_was_started(code: int) -> None:
    """Whatever its exit status says."""
    failing = report_of(["t.py::a"], ["t.py::b"], exit_code=code)
    room = Room(suite=Suite([failing, PASSING]))
    result = await room.run(Task("fix", "/r", test_command="pytest -q"))
    assert result.verdict.name == "resolved"


async def test_a_detected_test_command_that_is_not_there_is_a_warning_with_its_mend() -> None:
    """The repository did not ask for it in so many words."""
    result = await Room(suite=Suite([UNSTARTED, UNSTARTED])).run()
    assert result.verdict.name == "no_tests"
    assert "--test-command" in result.verdict.detail
    assert any("was not found" in text and "--test-command" in text for text in result.warnings)


async def test_a_set_up_command_that_worked_is_told_of() -> None:
    """Once, before anything else is done with what it made."""
    room = Room()
    await room.run(replace(TASK, setup="make deps"))
    assert room.types[1:3] == ["notice", "workspace_ready"]
    assert room.entries[1].event == Notice("Set up with `make deps`.")


async def test_a_set_up_command_that_fails_ends_a_run_before_any_model_call() -> None:
    """The base is made with it, and nothing of the agent has begun."""
    error = UnfitError("The set-up command `make` failed with exit status 2.")
    room = Room(driver=Driver(prepare_error=error))
    task = replace(TASK, setup="make")
    with pytest.raises(UnfitError):
        await room.run(task)
    assert room.types == ["run_started", "run_ended"]
    assert (room.agent.strategies, room.driver.boxes) == ([], [])
    room.driver.prepare_error = None
    await room.run(task)
    assert room.driver.specs[0].setup == "make"


@pytest.mark.parametrize("commands", [{"setup": "a\0b"}, {"test_command": "a\0b"}])
async def test_a_command_that_no_program_can_be_given_is_refused(commands: dict[str, str]) -> None:
    """Before there is a run."""
    room = Room()
    with pytest.raises(UsageError, match="NUL"):
        await room.run(replace(TASK, **commands))
    assert await room.store.rows() == ()


async def test_a_base_that_cannot_be_made_ends_the_record_and_comes_out() -> None:
    """The caller learns what to mend; the record has its end."""
    error = SandboxUnavailableError("No space.", mend="Free some.")
    room = Room(driver=Driver(prepare_error=error))
    with pytest.raises(SandboxUnavailableError):
        await room.run()
    assert (await room.store.rows())[0].outcome == "failed"


async def test_without_walls_no_run_begins() -> None:
    """The error names what is missing and how to get it."""
    room = Room(driver=Driver(usable=False))
    with pytest.raises(SandboxUnavailableError) as caught:
        await room.run()
    assert "apt install bubblewrap" in caught.value.mend
    assert await room.store.rows() == ()


async def test_without_a_model_no_run_begins() -> None:
    """There is no record of a run that could not start."""
    room = Room(models=Models(ModelUnavailableError("None.")))
    with pytest.raises(ModelUnavailableError):
        await room.run()
    assert await room.store.rows() == ()


async def test_a_dirty_tree_is_a_warning() -> None:
    """The user learns that the run does not see those changes."""
    result = await Room(resolved=Resolved(COMMIT, ("a.py", "b.py"))).run()
    assert "a.py, b.py" in result.warnings[0]


async def test_an_empty_task_is_wrong_usage() -> None:
    """Nothing is started for it."""
    with pytest.raises(UsageError):
        await Room().run(Task(" \n", "/r"))


async def test_credentials_of_a_url_never_go_on_record() -> None:
    """The address is kept, the token is not."""
    result = await Room().run(Task("fix", "https://user:token@host.example/p.git"))
    assert result.task.repository == "https://host.example/p.git"


async def test_a_failed_model_call_is_counted_apart() -> None:
    """It has no request id and no cost."""
    failed = ModelCallFailed(1, "plan", "main", "key", 503, "upstream", "No answer.")
    result = await Room(agent=Agent((failed, LoopEnded("failed", "No answer.")))).run()
    assert [call.status for call in result.failed_calls] == [503]
    assert result.calls == ()


async def test_a_regression_is_named() -> None:
    """The verdict says which test the patch broke."""
    room = Room(suite=Suite([PASSING, report_of(["t.py::a"], ["t.py::b"])]))
    result = await room.run()
    assert result.verdict.name == "not_resolved"
    assert "t.py::b" in result.verdict.detail
