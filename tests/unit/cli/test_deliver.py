"""Which finished diffs are put where the user wants them."""

from dataclasses import replace

import pytest
from tests.unit.runs.parts import COMMIT, NO_PATCH, PATCH
from tests.unit.runs.test_summary import STARTED, record

from turnout.cli.run.deliver import Destination
from turnout.core.runs import Patch, Verdict, VerdictName
from turnout.runs.summary import RunResult, fold


class Place:
    """A repository that remembers what it was given."""

    def __init__(self) -> None:
        self.applied: list[Patch] = []
        self.messages: list[str] = []

    async def apply(self, patch: Patch) -> None:
        """Note it."""
        self.applied.append(patch)

    async def make_branch(self, name: str, base: str, patch: Patch, message: str) -> str:
        """Note its message."""
        self.messages.append(message)
        return COMMIT


def ended(verdict: VerdictName | None, patch: Patch = PATCH) -> RunResult:
    """Return a run that ended with this verdict."""
    judged = Verdict(verdict, None, None, True) if verdict else None
    return replace(fold(record(STARTED)), verdict=judged, patch=patch)


@pytest.mark.parametrize("verdict", ["resolved", "no_regression", "no_tests"])
async def test_a_diff_that_no_test_speaks_against_is_applied(verdict: VerdictName) -> None:
    """Where there are no tests, nobody speaks against it."""
    place = Place()
    delivered = await Destination("apply", place).deliver(ended(verdict), ())
    assert (delivered.done, place.applied) == (True, [PATCH])


@pytest.mark.parametrize("verdict", ["not_resolved", "tests_touched", None])
async def test_any_other_diff_is_left_on_record_with_the_way_to_take_it(
    verdict: VerdictName | None,
) -> None:
    """The working tree stays as it is; whoever wants the diff all the same is told how."""
    place, result = Place(), ended(verdict)
    delivered = await Destination("apply", place).deliver(result, ())
    assert (delivered.done, place.applied) == (False, [])
    assert f"turnout runs diff {result.run_id} | git apply" in delivered.text
    assert (verdict or "no verdict") in delivered.text


async def test_where_nothing_was_changed_there_is_nothing_to_refuse() -> None:
    """The verdict of a run without a diff is no obstacle."""
    delivered = await Destination("apply", Place()).deliver(ended("not_resolved", NO_PATCH), ())
    assert delivered.text == "There is no diff to deliver."


async def test_a_branch_gets_any_diff_and_says_what_became_of_it() -> None:
    """It is a place to read the diff, and its commit names the verdict."""
    place = Place()
    delivered = await Destination("branch", place, "fix").deliver(ended("not_resolved"), ())
    assert delivered.done
    assert place.messages[0].endswith("\nTurnout-Verdict: not_resolved\n")
