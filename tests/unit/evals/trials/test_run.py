"""One trial, with a scripted service and a scripted judge."""

from dataclasses import replace

import pytest
from tests.unit.evals.trials.parts import (
    COMMAND,
    COMMIT,
    DIFF,
    INSTANCE,
    Judge,
    NoReceipts,
    Programs,
    Works,
    given_of,
)

from turnout.core.events import ModelCallFailed, VerdictGiven
from turnout.core.runs import Verdict
from turnout.errors import ModelUnavailableError, RepositoryError, UsageError
from turnout.evals.trials.places import Place
from turnout.evals.trials.run import Doers, Shared, Trials
from turnout.testing.clock import FrozenClock


class Places:
    """Says where every instance is."""

    def __init__(self, failure=None):
        self.asked = []
        self.failure = failure

    async def of(self, instance, mode):
        """Return it."""
        self.asked.append(mode)
        if self.failure is not None:
            raise self.failure
        return Place("/made.git", COMMIT)


class House:
    """Trials of fakes."""

    def __init__(self, works=None, *, programs=None, places=None, shared=None):
        self.clock = FrozenClock()
        self.works = works or Works()
        self.judge = Judge(self.clock)
        self.places = places or Places()
        doers = Doers(self.works, programs, self.judge, NoReceipts())
        self.trials = Trials(doers, self.places, self.clock, shared=shared)
        self.shown = []

    async def run(self, given=None):
        """Run one unit."""
        return await self.trials.run(given or given_of(), self.shown.append)


async def test_a_trial_holds_the_run_and_the_grade():
    """And what it is the result of."""
    house = House()
    given = given_of(mode="visible", attempt=3, strict=True)
    trial = await house.run(given)
    assert trial.unit == given.unit
    assert (trial.grade, trial.failed_before, trial.run_id) == ("resolved", True, "run-1")
    assert (trial.outcome, trial.steps, trial.nudges) == ("answered", 1, 2)
    assert trial.diff == DIFF.decode()
    assert len(house.shown) == 4
    ((_, base, diff, strict),) = house.judge.asked
    assert (base.repository, base.commit, diff, strict) == ("/made.git", COMMIT, DIFF, True)
    assert house.places.asked == ["visible"]


async def test_the_harness_counts_neither_the_run_nor_the_grading_as_its_own():
    """What the judge did once for the instance is in neither figure."""
    trial = await House().run()
    assert (trial.grading_seconds, trial.overhead_seconds) == (2.0, 0.0)


async def test_an_instance_says_how_its_workspace_is_set_up():
    """Else the settings do, for a repository that is not made here."""
    house = House(shared=Shared("shell", "make ready"))
    await house.run(given_of(INSTANCE))
    await house.run(given_of(replace(INSTANCE, repository="/srv/clone", files={})))
    await house.run(given_of(replace(INSTANCE, setup="make own")))
    assert [task.setup for task in house.works.tasks] == [None, "make ready", "make own"]
    assert house.works.tasks[0].surface == "shell"
    assert [base.setup for _, base, _, _ in house.judge.asked] == [None, "make ready", "make own"]


def failed_call(status):
    """Return a model call that failed."""
    return ModelCallFailed(1, "act", "main", "k", status, "code", "error")


def judged():
    """Return what our own tests said."""
    return VerdictGiven(Verdict("not_resolved", None, None, None, "no"))


@pytest.mark.parametrize(
    ("works", "grade"),
    [
        (Works("failed", events=(failed_call(None), judged())), "infrastructure"),
        (Works("failed", events=(failed_call(503), judged())), "infrastructure"),
        (Works("failed", events=(failed_call(429), judged())), "infrastructure"),
        (Works("failed", events=(failed_call(400), judged())), "resolved"),
        (Works("failed"), "infrastructure"),
        (Works("failed", events=(judged(),)), "resolved"),
        (Works("cancelled"), "infrastructure"),
        (Works("failed", commit=""), "infrastructure"),
        (Works("step_limit"), "resolved"),
        (Works("capped"), "resolved"),
    ],
)
async def test_what_a_provider_or_a_sandbox_has_done_is_nobodys_failure(works, grade):
    """What a model has done is, and its patch is graded whatever ended the run."""
    trial = await House(works).run()
    assert trial.grade == grade
    assert trial.run_failed == (grade == "infrastructure")


async def test_a_repository_that_cannot_be_used_is_infrastructure():
    """The other instances can still be run."""
    trial = await House(places=Places(RepositoryError("no such commit"))).run()
    assert (trial.grade, trial.run_id, trial.outcome) == ("infrastructure", None, None)
    assert "no such commit" in trial.detail


async def test_an_environment_that_is_not_fit_ends_the_evaluation():
    """Every other instance would meet the same."""
    with pytest.raises(ModelUnavailableError):
        await House(Works(failure=ModelUnavailableError("no model"))).run()


async def test_what_a_command_left_is_graded_like_a_run():
    """It has no record, and how it ended is said."""
    programs = Programs()
    house = House(programs=programs)
    trial = await house.run(given_of(arm=COMMAND))
    assert (trial.grade, trial.outcome, trial.run_id) == ("resolved", "answered", None)
    assert (trial.seconds, trial.cost_micros, trial.steps) == (4.0, 7, 3)
    programs.left = replace(programs.left, ended="It took too long.", timed_out=True)
    trial = await house.run(given_of(arm=COMMAND))
    assert (trial.outcome, trial.reason, trial.grade) == ("capped", "It took too long.", "resolved")
    assert not house.works.tasks


async def test_a_command_that_cannot_be_run_here_is_wrong_usage():
    """Nothing that it does not name is run in its place."""
    with pytest.raises(UsageError):
        await House().run(given_of(arm=COMMAND))


async def test_an_outage_is_no_time_of_the_run():
    """It would make the arm slow that happened to be at work."""
    trial = await House(Works(took=28_900.0, away=28_800.0)).run()
    assert trial.seconds == 100.0
