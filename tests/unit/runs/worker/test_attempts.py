"""Runs that may try more than once, and runs whose change is reviewed."""

import asyncio

import pytest
from tests.unit.runs.parts import (
    DONE,
    FAILING,
    NO_PATCH,
    PASSING,
    PATCH,
    Agent,
    Driver,
    Models,
    Room,
    Suite,
    report_of,
)
from tests.unit.runs.test_summary import call

from turnout.core.events import (
    ApprovalAsked,
    ApprovalGiven,
    AttemptChosen,
    AttemptStarted,
    LoopEnded,
    ModelCallFailed,
    Notice,
    Reviewed,
    ReviewNote,
    StepStarted,
    ToolCallDone,
    ToolCallIntended,
)
from turnout.core.ids import ToolCallId
from turnout.core.money import Micros
from turnout.core.runs import FileChange, Patch
from turnout.core.tools import ToolCall, ToolResult
from turnout.errors import SandboxDiedError
from turnout.runs.worker import Effort

WORSE = report_of([], ["t.py::a", "t.py::b"], output="assert 3 == 4")
STILL = report_of(["t.py::a"], ["t.py::b"], output="assert 1 == 2")
STUCK = LoopEnded("stuck", "The model repeats calls.", "I am lost.")
OTHER = Patch(b"diff --git a/other.py b/other.py\n", (FileChange("other.py", "added", 1, 0),))
FINE = Reviewed(False, "Good.")
BAD = Reviewed(True, "It breaks callers.", (ReviewNote("pages.py", 3, "Off by one.", True),))


def room(*reports: object, attempts: int = 3, **fields: object) -> Room:
    """Return a room whose tests say this, first at base and then after each attempt."""
    agent = Agent((StepStarted(1, "act", "latency"), DONE), turns=((DONE,), (DONE,)))
    effort = Effort(attempts=attempts, **fields)
    return Room(agent=agent, suite=Suite([FAILING, *reports]), effort=effort)


def of_type(of: Room, kind: type) -> list[object]:
    """Return the events of one kind, oldest first."""
    return [entry.event for entry in of.entries if isinstance(entry.event, kind)]


async def test_the_first_attempt_that_our_tests_accept_is_the_last() -> None:
    """No more is spent than is needed."""
    here = room(STILL, PASSING)
    result = await here.run()
    assert [e.attempt for e in of_type(here, AttemptStarted)] == [1, 2]
    assert of_type(here, AttemptChosen) == [AttemptChosen(2, "Our tests accept it.")]
    assert (result.verdict.name, result.outcome) == ("resolved", "answered")
    assert here.types.count("verdict_given") == 1


async def test_each_attempt_has_a_fresh_workspace_and_its_own_place_in_the_count_of_steps() -> None:
    """Base, work and tests, work and tests: a sandbox each."""
    here = room(STILL, PASSING)
    await here.run()
    assert [box.did[0] for box in here.driver.boxes] == [
        "tests",
        "kill_all",
        "apply_patch",
        "kill_all",
        "apply_patch",
    ]
    assert [(brief.attempt, brief.first_step) for brief in here.agent.briefs] == [(1, 1), (2, 2)]


async def test_a_later_attempt_is_told_what_the_failed_one_showed() -> None:
    """Diff, failing tests, what they print, the last words; the first is told nothing."""
    here = room(STILL, PASSING)
    here.agent.events = (STUCK,)
    await here.run()
    first, second = (brief.lessons for brief in here.agent.briefs)
    assert first == ""
    for told in ("I am lost.", "+b", "t.py::b", "assert 1 == 2", "not_resolved"):
        assert told in second
    assert of_type(here, AttemptStarted)[1].lessons == second


async def test_after_enough_failures_act_steps_are_routed_for_quality() -> None:
    """Until then they are routed as they are configured."""
    here = room(STILL, STILL, PASSING, escalate_after=2)
    await here.run()
    assert [brief.objective for brief in here.agent.briefs] == [None, None, "quality"]
    started = of_type(here, AttemptStarted)
    assert [e.objective for e in started] == ["latency", "latency", "quality"]


async def test_an_escalated_attempt_is_worked_with_as_its_model_is_best_worked_with() -> None:
    """A small model repairs; a strong one that it is handed to has tools."""
    here = room(STILL, PASSING)
    here.models = Models(strategy="repair", escalated="loop")
    await here.run()
    assert here.agent.strategies == ["repair", "loop"]
    assert here.agent.explanations == 1


async def test_where_none_is_accepted_the_fewest_failing_tests_decide() -> None:
    """The diff that counts is that of the chosen attempt, not of the last."""
    here = room(STILL, WORSE, WORSE)
    here.driver.patches = [OTHER, PATCH, PATCH]
    result = await here.run()
    assert (result.chosen.attempt, result.patch, result.tests_after) == (1, OTHER, STILL)
    assert result.verdict.name == "not_resolved"
    assert [use.patch for use in result.attempts] == [OTHER, PATCH, PATCH]


async def test_a_change_of_tests_never_wins_over_an_honest_failure() -> None:
    """Whatever the tests then say."""
    here = room(PASSING, STILL, attempts=2)
    touching = Patch(b"diff", (FileChange("t.py", "modified", 1, 1),))
    here.driver.patches = [touching, PATCH]
    result = await here.run()
    assert (result.chosen.attempt, result.verdict.name) == (2, "not_resolved")


async def test_nothing_changed_is_no_result_where_anything_was() -> None:
    """An attempt without a diff comes last."""
    here = room(WORSE, attempts=2)
    here.driver.patches = [NO_PATCH, PATCH]
    result = await here.run()
    assert result.chosen.attempt == 2


@pytest.mark.parametrize("outcome", ["capped", "refused", "cancelled"])
async def test_what_stops_the_run_stops_its_attempts(outcome: str) -> None:
    """A cap, the policy or a person; the run ends so even where an earlier attempt is chosen."""
    here = room(STILL, WORSE)
    here.agent.turns = ((LoopEnded(outcome, "Enough."),), (DONE,))
    result = await here.run()
    assert len(of_type(here, AttemptStarted)) == 2
    assert (result.outcome, result.chosen.attempt) == (outcome, 1)


async def test_caps_count_over_all_attempts() -> None:
    """The second is told what the first has cost; none is begun once the limit is reached."""
    here = room(STILL, STILL, max_spend=Micros(500))
    here.agent.events = (call(300), DONE)
    here.agent.turns = ((call(300), DONE), (DONE,))
    await here.run()
    assert [brief.spent for brief in here.agent.briefs] == [0, 300]
    assert Notice("No further attempt: the run has spent what it may.") in of_type(here, Notice)


async def test_no_attempt_is_wasted_on_models_that_do_not_answer() -> None:
    """The gateway has tried all that it may."""
    here = room(STILL)
    failed = ModelCallFailed(1, "act", "main", "k", 503, "upstream", "No.")
    here.agent.events = (failed, LoopEnded("failed", "A model call failed."))
    await here.run()
    assert len(here.agent.briefs) == 1


async def test_a_sandbox_that_dies_costs_one_attempt_and_not_the_run() -> None:
    """What the others made is kept."""
    here = room(STILL, PASSING)
    here.agent.turns = ((SandboxDiedError("gone"),), (DONE,))
    here.driver.patches = [PATCH, NO_PATCH, PATCH]
    result = await here.run()
    assert (result.chosen.attempt, result.verdict.name) == (3, "resolved")


async def test_without_tests_the_models_word_ends_the_attempts() -> None:
    """Nothing could judge another one better."""
    here = room(attempts=3)
    here.suite = Suite([], detected=None)
    result = await here.run()
    assert (len(here.agent.briefs), result.verdict.name) == (1, "no_tests")


async def test_passing_tests_do_not_finish_a_task_that_the_model_gave_up() -> None:
    """Where nothing failed before, they say nothing of whether it is done."""
    here = room(PASSING, PASSING, attempts=2)
    here.suite = Suite([PASSING, PASSING, PASSING])
    here.agent.events = (STUCK,)
    result = await here.run()
    assert (result.chosen.attempt, result.verdict.name) == (2, "no_regression")


async def test_a_single_attempt_is_no_attempt_on_record() -> None:
    """As long as nobody asks for more."""
    here = room(STILL, attempts=1)
    result = await here.run()
    assert "attempt_started" not in here.types
    assert "attempt_chosen" not in here.types
    assert (result.attempts, result.chosen) == ((), None)


async def test_a_review_reads_the_change_in_a_workspace_that_holds_it() -> None:
    """Fresh, without a network, after our tests and before the explanation."""
    here = room(PASSING, attempts=1, review="annotate")
    here.agent.reviews = (FINE,)
    result = await here.run()
    reviewing = here.driver.boxes[-1]
    assert (reviewing.did, reviewing.reaches) == (["apply_patch", "close"], "")
    at = [here.types.index(kind) for kind in ("verdict_given", "reviewed", "explained")]
    assert at[1] < at[0] < at[2]
    assert (result.review, result.blocked) == (FINE, False)
    (subject,) = here.agent.subjects
    assert (subject.patch, subject.tests_after, subject.brief.first_step) == (PATCH, PASSING, 2)


async def test_a_change_that_our_tests_refuse_is_not_reviewed() -> None:
    """It is not taken anyway."""
    here = room(STILL, attempts=1, review="block")
    result = await here.run()
    assert result.review is None


async def test_what_a_review_blocks_is_mended_by_the_next_attempt() -> None:
    """Its notes are what the attempt is told."""
    here = room(PASSING, PASSING, attempts=2, review="block")
    here.agent.reviews = (BAD, FINE)
    result = await here.run()
    assert "pages.py:3 (must be mended): Off by one." in here.agent.briefs[1].lessons
    assert (result.chosen.attempt, result.blocked) == (2, False)


async def test_a_change_that_stays_blocked_is_shown_as_blocked() -> None:
    """The tests' word is one thing, the review's another."""
    here = room(PASSING, PASSING, attempts=2, review="block")
    here.agent.reviews = (BAD, BAD)
    result = await here.run()
    assert (result.verdict.name, result.blocked, result.chosen.attempt) == ("resolved", True, 1)


async def test_a_review_without_a_verdict_is_no_reason_to_try_again() -> None:
    """There is nothing to learn from it; where it may block, nothing passes."""
    here = room(PASSING, attempts=3, review="block")
    here.agent.reviews = (Reviewed(True, "It came to no verdict.", decided=False),)
    result = await here.run()
    assert (len(here.agent.briefs), result.blocked) == (1, True)


async def test_a_review_whose_sandbox_fails_lets_nothing_pass() -> None:
    """The run does not die of it."""
    here = room(PASSING, attempts=1, review="block")
    here.driver.applies = True

    class Refusing(Driver):
        async def create(self, *given: object, **named: object) -> object:
            box = await super().create(*given, **named)
            if len(self.boxes) == 4:
                self.applies = False
            return box

    here.driver = Refusing()
    result = await here.run()
    assert (result.outcome, result.blocked, result.review.decided) == ("answered", True, False)


async def test_a_stop_while_a_person_is_asked_ends_the_run_at_once() -> None:
    """Nothing is under way then; the work so far is kept."""
    here = room(STILL, attempts=1)
    asked = ApprovalAsked(1, ToolCall(ToolCallId("c"), "run", "{}"), "run")

    async def wait() -> None:
        here.stop.ask()
        await asyncio.Event().wait()

    here.agent.events = (StepStarted(1, "act", "latency"), asked, wait, DONE)
    result = await here.run()
    assert (result.outcome, result.patch) == ("cancelled", PATCH)


async def test_waiting_for_a_person_is_no_time_of_the_run() -> None:
    """Else a coffee break would end it."""
    here = room(STILL, STILL, attempts=2)
    clock = here.clock
    call_ = ToolCall(ToolCallId("c"), "run", "{}")

    async def an_hour() -> None:
        clock.advance(3600.0)

    async def a_minute() -> None:
        clock.advance(60.0)

    given = ApprovalGiven(1, call_.id, True, "the user")
    here.agent.events = (
        a_minute,
        ApprovalAsked(1, call_, "run"),
        an_hour,
        given,
        ToolCallIntended(1, call_),
        ToolCallDone(1, ToolResult(call_.id, "ok"), 0.1),
        DONE,
    )
    await here.run()
    assert here.agent.briefs[1].seconds == pytest.approx(60.0)
