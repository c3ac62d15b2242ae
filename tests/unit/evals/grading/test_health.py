"""Whether instances can judge, without a fix and with the known one."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.unit.evals.grading.suites import BROKEN, FILES, INSTANCE, MENDED, RIGHT, ToySuite

from turnout.core.runs import TestReport
from turnout.errors import ConfigError, RepositoryError
from turnout.evals.grading.grade import Grader
from turnout.evals.grading.health import Checker, Health, add_health, load_health
from turnout.evals.instances.model import Instance
from turnout.sandbox.base import BaseSpec, Limits, Sandbox
from turnout.testing.sandbox import ScriptedDriver

UNNAMED = replace(INSTANCE, patch=RIGHT.decode())
GOLD = replace(UNNAMED, fail_to_pass=("tests/test_hidden.py::test_h",))


async def checked(
    instance: Instance = GOLD,
    suite: ToySuite | None = None,
    *,
    times: int = 1,
    failure: Exception | None = None,
) -> Health:
    """Check one instance."""
    walls = ScriptedDriver(FILES, failure=failure)
    grader = Grader(walls, Limits(), test_timeout=9, run_tests=suite or ToySuite())
    return await Checker(grader, times=times).check(instance, BaseSpec("/srv/repo", "abc"))


async def test_an_instance_whose_fix_makes_the_right_tests_pass_is_sound() -> None:
    """Each time with another seed of hashes."""
    suite = ToySuite()
    health = await checked(suite=suite, times=3)
    assert health.sound
    assert (health.failed_before, health.gold, health.times) == (True, "resolved", 3)
    seeds = [line.split("PYTHONHASHSEED=")[1][0] for line in suite.lines]
    assert seeds == ["0", "0", "1", "2"]


async def test_what_must_pass_is_found_out_by_the_known_fix_where_nobody_says_it() -> None:
    """It is run once more for that; one that mends nothing shows that nothing can be judged."""
    suite = ToySuite()
    assert (await checked(UNNAMED, suite)).sound
    assert len(suite.lines) == 3
    health = await checked(UNNAMED, ToySuite(after=BROKEN))
    assert (health.sound, health.gold) == (False, None)
    assert "With the known fix no test passes" in health.detail


async def test_an_instance_whose_tests_pass_without_a_fix_is_not_sound() -> None:
    """Its fix need not be tried."""
    health = await checked(UNNAMED, ToySuite(before=MENDED))
    assert (health.sound, health.failed_before, health.gold) == (False, False, None)
    assert "pass without any fix" in health.detail


async def test_an_instance_whose_fix_mends_nothing_is_not_sound() -> None:
    """The test that still fails is named."""
    health = await checked(suite=ToySuite(after=BROKEN))
    assert (health.sound, health.gold) == (False, "unresolved")
    assert "tests/test_hidden.py::test_h" in health.detail


async def test_a_fix_that_is_graded_differently_by_turns_is_not_sound() -> None:
    """The worst counts."""
    outcomes = iter((MENDED, BROKEN, MENDED))

    @dataclass
    class Flaky(ToySuite):
        """Ends otherwise with each run of the fix."""

        async def __call__(
            self, sandbox: Sandbox, command: str, *, selector: str = "", timeout: float
        ) -> TestReport:
            """Report the next end."""
            if self.lines:
                self.after = next(outcomes)
            return await super().__call__(sandbox, command, selector=selector, timeout=timeout)

    health = await checked(suite=Flaky(), times=3)
    assert (health.sound, health.gold) == (False, "unresolved")
    assert "resolved, unresolved by turns" in health.detail


async def test_without_a_known_fix_the_failing_tests_are_all_there_is_to_see() -> None:
    """No fix is graded."""
    health = await checked(INSTANCE)
    assert (health.sound, health.gold, health.times) == (True, None, 0)


async def test_our_own_trouble_leaves_an_instance_unsound_for_now() -> None:
    """The row says what it was."""
    health = await checked(failure=RepositoryError("gone"))
    assert (health.sound, health.detail) == (False, "gone")


def test_rows_come_back_from_the_file_the_newest_of_each_instance(tmp_path: Path) -> None:
    """What a crash left of a last line is no row."""
    path = tmp_path / "new" / "set.health.jsonl"
    assert load_health(path) == {}
    for row in (Health("a", "1", True, "x"), Health("b", "2", False, "y")):
        add_health(path, row)
    newest = Health("a", "1", False, "z", True, "unresolved", 3, "env", 1.5)
    add_health(path, newest)
    with path.open("a") as file:
        file.write('{"instance_id"')
    assert load_health(path) == {"a": newest, "b": Health("b", "2", False, "y")}


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    """The line is named."""
    path = tmp_path / "x.jsonl"
    path.write_text('{"grade": "resolved"}\n')
    with pytest.raises(ConfigError, match="line 1"):
        load_health(path)
