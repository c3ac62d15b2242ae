"""Kept patches graded again."""

from dataclasses import replace

import pytest
from tests.unit.evals.grading.suites import BROKEN, FILES, INSTANCE, RIGHT, ToySuite

from turnout.errors import RepositoryError
from turnout.evals.grading.grade import Grader
from turnout.evals.instances.model import Instance
from turnout.evals.regrade import Regraded, gradable, regrade
from turnout.evals.trials.model import Mode, Trial
from turnout.sandbox.base import BaseSpec, Limits
from turnout.testing.sandbox import ScriptedDriver

TRIAL = Trial("one", "d", "unresolved", outcome="answered", diff=RIGHT.decode(), steps=7)


async def base_of(instance: Instance, mode: Mode) -> BaseSpec:
    """Return where the runs began, which says how they were shown the tests."""
    if instance.repository == "gone":
        raise RepositoryError("It is gone.")
    return BaseSpec("/srv/repo", mode)


async def regraded(
    trial: Trial, *, suite: ToySuite | None = None, instance: Instance = INSTANCE
) -> tuple[Regraded, ScriptedDriver]:
    """Grade one trial again."""
    walls = ScriptedDriver(FILES)
    grader = Grader(walls, Limits(), test_timeout=9, run_tests=suite or ToySuite())
    (done,) = [each async for each in regrade([(trial, instance)], grader, base_of)]
    return done, walls


@pytest.mark.parametrize("mode", ["hidden", "visible"])
async def test_a_patch_gets_the_grade_that_it_has_now(mode: Mode) -> None:
    """What its run was stays; the base is that of its mode."""
    done, walls = await regraded(replace(TRIAL, mode=mode))
    assert (done.changed, done.new.grade, done.new.steps) == (True, "resolved", 7)
    assert (done.new.canary_failed, done.new.unit) == (True, done.old.unit)
    assert walls.prepared == [BaseSpec("/srv/repo", mode)]


async def test_a_patch_that_is_graded_as_before_has_not_changed() -> None:
    """Its details are those of now."""
    done, _ = await regraded(TRIAL, suite=ToySuite(after=BROKEN))
    assert not done.changed
    assert "test_h" in done.new.detail


async def test_a_patch_whose_bytes_were_not_kept_is_not_blamed() -> None:
    """Escapes stand for bytes that are no text."""
    diff = RIGHT.decode().replace("-a", "-\\xe9")
    done, _ = await regraded(replace(TRIAL, diff=diff))
    assert done.new.grade == "infrastructure"
    done, _ = await regraded(replace(TRIAL, diff=RIGHT.decode().replace("-a", "-z")))
    assert done.new.grade == "does_not_apply"


async def test_a_base_that_is_gone_is_no_verdict() -> None:
    """It is said so."""
    done, _ = await regraded(TRIAL, instance=replace(INSTANCE, repository="gone"))
    assert (done.new.grade, done.new.detail) == ("infrastructure", "It is gone.")


def test_only_runs_of_these_very_rows_are_graded_again() -> None:
    """A row of other text is another task."""
    other = replace(TRIAL, instance_digest="e")
    unrun = replace(TRIAL, outcome=None)
    assert gradable([TRIAL, other, unrun], [INSTANCE]) == ((TRIAL, INSTANCE),)
