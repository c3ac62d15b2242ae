"""Grading by hidden tests, in a scripted sandbox."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from turnout.core.runs import TestReport
from turnout.errors import RepositoryError, SandboxDiedError
from turnout.evals.grade import Grade, Grader
from turnout.evals.instances import Instance
from turnout.sandbox.base import BaseSpec, Command, Limits, Sandbox
from turnout.testing.sandbox import ScriptedDriver

BASE = BaseSpec("/srv/repo", "abc")
FILES = {"calc.py": "a\n", "tests/test_calc.py": "t\n"}
HIDDEN = {"tests/test_hidden.py": "hidden"}
INSTANCE = Instance("one", "text", "", "HEAD", FILES, HIDDEN, "", (), (), "pytest", None, "d")
RIGHT = b"diff --git a/calc.py b/calc.py\n--- a/calc.py\n+++ b/calc.py\n@@ -1 +1 @@\n-a\n+b\n"
CHEAT = RIGHT.replace(b"calc.py", b"tests/test_calc.py").replace(b"-a", b"-t")


PASSING = {"tests/test_hidden.py::test_h": "passed"}


@dataclass(frozen=True)
class Suite:
    """Tests that end as told."""

    outcomes: Mapping[str, str]

    async def __call__(
        self, sandbox: Sandbox, command: str, *, selector: str = "", timeout: float
    ) -> TestReport:
        """Report without running anything."""
        passed = tuple(name for name, end in self.outcomes.items() if end == "passed")
        failed = tuple(name for name, end in self.outcomes.items() if end == "failed")
        await sandbox.run(Command(shell=command))
        return TestReport(command, 1 if failed else 0, passed, failed, 0.1, "")


async def graded(
    walls: ScriptedDriver,
    diff: bytes = RIGHT,
    *,
    outcomes: Mapping[str, str] = PASSING,
    instance: Instance = INSTANCE,
) -> Grade:
    """Grade one patch."""
    grader = Grader(walls, Limits(), test_timeout=9, run_tests=Suite(outcomes))
    return await grader.grade(instance, BASE, diff)


async def test_a_patch_that_passes_the_hidden_tests_is_resolved() -> None:
    """In a sandbox of its own at the base of the run, closed afterwards."""
    walls = ScriptedDriver(FILES)
    assert (await graded(walls)).name == "resolved"
    (sandbox,) = walls.sandboxes
    assert walls.prepared == [BASE]
    assert sandbox.files["calc.py"].data == b"b\n"
    assert sandbox.files["tests/test_hidden.py"].data == b"hidden"
    assert sandbox.closed


async def test_a_failing_test_leaves_it_unresolved() -> None:
    """The grade names it."""
    grade = await graded(ScriptedDriver(FILES), outcomes={"tests/test_hidden.py::test_h": "failed"})
    assert grade.name == "unresolved"
    assert "tests/test_hidden.py::test_h" in grade.detail


async def test_hidden_tests_that_did_not_run_are_not_passed() -> None:
    """A green suite without them says nothing."""
    grade = await graded(ScriptedDriver(FILES), outcomes={"tests/test_calc.py::test_a": "passed"})
    assert grade.name == "unresolved"


async def test_changes_to_tests_are_left_out_and_named() -> None:
    """The tests in the sandbox are those of the instance."""
    walls = ScriptedDriver(FILES)
    grade = await graded(walls, RIGHT + CHEAT)
    assert grade == Grade("resolved", "1 tests pass.", ("tests/test_calc.py",))
    assert walls.sandboxes[0].files["tests/test_calc.py"].data == b"t\n"


@pytest.mark.parametrize("diff", [b"", CHEAT])
async def test_a_run_that_changed_no_source_made_no_patch(diff: bytes) -> None:
    """No sandbox is started for it."""
    walls = ScriptedDriver(FILES)
    assert (await graded(walls, diff)).name == "no_patch"
    assert not walls.sandboxes


async def test_a_patch_of_another_tree_does_not_apply() -> None:
    """No test is run."""
    walls = ScriptedDriver(FILES)
    assert (await graded(walls, RIGHT.replace(b"-a", b"-z"))).name == "does_not_apply"
    assert not walls.sandboxes[0].commands


@pytest.mark.parametrize(
    ("outcomes", "name"),
    [
        ({"t::new": "passed", "t::old": "passed", "t::other": "failed"}, "resolved"),
        ({"t::new": "passed", "t::old": "failed"}, "unresolved"),
        ({"t::new": "failed", "t::old": "passed"}, "unresolved"),
        ({"t::old": "passed"}, "unresolved"),
        ({"t::new": "skipped", "t::old": "passed"}, "unresolved"),
    ],
)
async def test_named_tests_decide_where_there_are_any(outcomes: dict[str, str], name: str) -> None:
    """A missing or skipped test has not passed."""
    instance = replace(INSTANCE, fail_to_pass=("t::new",), pass_to_pass=("t::old",))
    assert (await graded(ScriptedDriver(FILES), outcomes=outcomes, instance=instance)).name == name


async def test_a_patch_of_hidden_tests_is_applied() -> None:
    """As SWE-bench brings them."""
    patch = CHEAT.decode()
    instance = replace(INSTANCE, hidden_tests={}, test_patch=patch)
    walls = ScriptedDriver(FILES)
    outcomes = {"a::b": "passed"}
    assert (await graded(walls, outcomes=outcomes, instance=instance)).name == "resolved"
    assert walls.sandboxes[0].files["tests/test_calc.py"].data == b"b\n"


@pytest.mark.parametrize("failure", [RepositoryError("gone"), SandboxDiedError("dead")])
async def test_our_own_trouble_is_no_verdict_on_the_patch(failure: Exception) -> None:
    """It has a class of its own."""
    grade = await graded(ScriptedDriver(FILES, failure=failure))
    assert grade.name == "infrastructure"
    assert str(failure) in grade.detail
