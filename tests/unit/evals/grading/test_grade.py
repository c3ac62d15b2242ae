"""Grading by hidden tests, in a scripted sandbox."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.unit.evals.grading.suites import (
    BROKEN,
    FILES,
    INSTANCE,
    MENDED,
    RIGHT,
    ToySuite,
    failing_canaries,
)

from turnout.core.runs import TestReport
from turnout.errors import RepositoryError, SandboxDiedError
from turnout.evals.grading.grade import Grade, Grader
from turnout.evals.instances.model import Instance
from turnout.sandbox.base import BaseSpec, Limits
from turnout.testing.sandbox import ScriptedDriver, ScriptedSandbox
from turnout.testing.sandbox.files import fake_file
from turnout.testing.sandbox.patching import difference

BASE = BaseSpec("/srv/repo", "abc")
CHEAT = RIGHT.replace(b"calc.py", b"tests/test_calc.py").replace(b"-a", b"-t")
NEW_TEST = (
    b"diff --git a/tests/test_new.py b/tests/test_new.py\nnew file mode 100644\n"
    b"--- /dev/null\n+++ b/tests/test_new.py\n@@ -0,0 +1 @@\n+n\n"
)
SETTINGS = {
    "pyproject.toml": '[project]\nversion = "1"\n',
    "setup.cfg": "[metadata]\nname = calc\n",
    "tox.ini": "[tox]\nenvlist = py\n",
}


def settings(path: str, text: str) -> bytes:
    """Return the change of a file of settings to this text."""
    files = {name: fake_file(content) for name, content in SETTINGS.items()}
    return difference(files, {**files, path: fake_file(text)}).diff


async def graded(
    walls: ScriptedDriver,
    diff: bytes = RIGHT,
    *,
    suite: ToySuite | None = None,
    instance: Instance = INSTANCE,
    strict: bool = False,
) -> Grade:
    """Grade one patch."""
    grader = Grader(walls, Limits(), test_timeout=9, run_tests=suite or ToySuite())
    return await grader.grade(instance, BASE, diff, strict=strict)


async def test_a_patch_that_passes_the_hidden_tests_is_resolved() -> None:
    """In a sandbox of its own at the base of the run, closed afterwards; each check is named."""
    walls = ScriptedDriver(FILES)
    grade = await graded(walls)
    assert grade.name == "resolved"
    assert (grade.failed_before, grade.passes_after, grade.tests_untouched) == (True, True, True)
    assert (grade.canary_failed, grade.bent_failed) == (True, None)
    assert (grade.missing, grade.lost, grade.dropped) == ((), (), ())
    assert grade.environment == "scripted"
    assert walls.prepared == [BASE]
    before, after = walls.sandboxes
    assert before.files["calc.py"].data == b"a\n"
    assert after.files["calc.py"].data == b"b\n"
    assert after.files["tests/test_hidden.py"].data == b"hidden"
    assert before.closed
    assert after.closed


async def test_what_is_known_of_an_instance_is_found_once() -> None:
    """A second patch starts one sandbox more."""
    walls = ScriptedDriver(FILES)
    grader = Grader(walls, Limits(), test_timeout=9, run_tests=ToySuite())
    for _ in range(2):
        assert (await grader.grade(INSTANCE, BASE, RIGHT)).name == "resolved"
    assert len(walls.sandboxes) == 3


async def test_a_failing_test_leaves_it_unresolved() -> None:
    """The grade names it."""
    grade = await graded(ScriptedDriver(FILES), suite=ToySuite(after=BROKEN))
    assert grade.name == "unresolved"
    assert grade.missing == ("tests/test_hidden.py::test_h",)
    assert "tests/test_hidden.py::test_h" in grade.detail


async def test_hidden_tests_that_did_not_run_are_not_passed() -> None:
    """A green suite without them says nothing."""
    suite = ToySuite(after={"tests/test_calc.py::test_a": "passed"})
    assert (await graded(ScriptedDriver(FILES), suite=suite)).name == "unresolved"


async def test_a_file_that_could_not_be_read_before_must_have_passed_tests() -> None:
    """None of its tests has a name before."""
    suite = ToySuite(
        before={"tests/test_hidden.py": "failed"}, after={"tests/test_calc.py::test_a": "passed"}
    )
    grade = await graded(ScriptedDriver(FILES), suite=suite)
    assert grade.name == "unresolved"
    assert "tests/test_hidden.py" in grade.detail
    suite = ToySuite(before={"tests/test_hidden.py": "failed"})
    assert (await graded(ScriptedDriver(FILES), suite=suite)).name == "resolved"


async def test_a_test_that_passed_before_must_go_on_passing() -> None:
    """One that does not run any more is lost."""
    suite = ToySuite(after={"tests/test_hidden.py::test_h": "passed"})
    grade = await graded(ScriptedDriver(FILES), suite=suite)
    assert (grade.name, grade.lost) == ("unresolved", ("tests/test_calc.py::test_a",))


async def test_a_canary_that_is_said_to_pass_gives_a_forger_away() -> None:
    """Whatever else passes."""

    def forged(sandbox: ScriptedSandbox) -> Mapping[str, str]:
        fixed = sandbox.files["calc.py"].data == b"b\n"
        return dict.fromkeys(failing_canaries(sandbox), "passed" if fixed else "failed")

    suite = ToySuite(canaries=forged)
    grade = await graded(ScriptedDriver(FILES), suite=suite)
    assert (grade.name, grade.canary_failed) == ("unresolved", False)


async def test_changes_to_tests_are_left_out_and_named() -> None:
    """The tests in the sandbox are those of the instance."""
    walls = ScriptedDriver(FILES)
    grade = await graded(walls, RIGHT + CHEAT + NEW_TEST)
    assert (grade.name, grade.tests_untouched) == ("resolved", False)
    assert (grade.tests_touched, grade.tests_added) == (
        ("tests/test_calc.py",),
        ("tests/test_new.py",),
    )
    assert walls.sandboxes[-1].files["tests/test_calc.py"].data == b"t\n"
    assert "tests/test_new.py" not in walls.sandboxes[-1].files


async def test_a_strict_grade_fails_whoever_touches_tests() -> None:
    """Nothing is run for it; a new test of one's own is no such thing."""
    walls = ScriptedDriver(FILES)
    grade = await graded(walls, RIGHT + CHEAT, strict=True)
    assert (grade.name, grade.tests_untouched) == ("tests_touched", False)
    assert "tests/test_calc.py" in grade.detail
    assert not walls.sandboxes
    assert (await graded(walls, RIGHT + NEW_TEST, strict=True)).name == "resolved"


async def test_settings_that_do_not_steer_the_tests_are_part_of_the_patch() -> None:
    """Such as the version of a package."""
    walls = ScriptedDriver({**FILES, **SETTINGS})
    new = settings("pyproject.toml", '[project]\nversion = "2"\n')
    grade = await graded(walls, RIGHT + new, strict=True)
    assert (grade.name, grade.control_touched) == ("resolved", ())
    assert b'"2"' in walls.sandboxes[-1].files["pyproject.toml"].data


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("pyproject.toml", '[tool.pytest.ini_options]\naddopts = "-p evil"\n'),
        ("setup.cfg", "[tool:pytest]\naddopts = -p evil\n"),
        ("tox.ini", "[pytest]\naddopts = -p evil\n"),
    ],
)
@pytest.mark.parametrize("strict", [False, True])
async def test_settings_that_steer_the_tests_are_left_out(
    path: str, text: str, strict: bool
) -> None:
    """What is tested has those of the base."""
    walls = ScriptedDriver({**FILES, **SETTINGS})
    grade = await graded(walls, RIGHT + settings(path, text), strict=strict)
    assert grade.name == ("tests_touched" if strict else "resolved")
    assert grade.control_touched == (path,)
    if not strict:
        assert walls.sandboxes[-1].files[path].data.decode() == SETTINGS[path]


@pytest.mark.parametrize("diff", [b"", CHEAT, NEW_TEST])
async def test_a_run_that_changed_no_source_made_no_patch(diff: bytes) -> None:
    """No sandbox is started for it."""
    walls = ScriptedDriver(FILES)
    assert (await graded(walls, diff)).name == "no_patch"
    assert not walls.sandboxes


async def test_a_patch_of_another_tree_does_not_apply() -> None:
    """No test is run with it."""
    walls, suite = ScriptedDriver(FILES), ToySuite()
    grade = await graded(walls, RIGHT.replace(b"-a", b"-z"), suite=suite)
    assert (grade.name, grade.failed_before, grade.passes_after) == ("does_not_apply", True, None)
    assert len(suite.lines) == 1


@pytest.mark.parametrize(
    ("after", "name"),
    [
        ({"t::new": "passed", "t::old": "passed", "t::other": "failed"}, "resolved"),
        ({"t::new": "passed", "t::old": "failed"}, "unresolved"),
        ({"t::new": "failed", "t::old": "passed"}, "unresolved"),
        ({"t::old": "passed"}, "unresolved"),
        ({"t::new": "skipped", "t::old": "passed"}, "unresolved"),
        ({"t::new": "passed", "t::old": "skipped"}, "unresolved"),
    ],
)
async def test_named_tests_decide_where_there_are_any(after: dict[str, str], name: str) -> None:
    """A missing or skipped test has not passed."""
    instance = replace(INSTANCE, fail_to_pass=("t::new",), pass_to_pass=("t::old",))
    suite = ToySuite(before={"t::new": "failed", "t::old": "passed"}, after=after)
    assert (await graded(ScriptedDriver(FILES), suite=suite, instance=instance)).name == name


@pytest.mark.parametrize(
    ("before", "failed"),
    [
        ({"t::new": "passed", "t::old": "passed"}, False),
        ({"t::new": "failed", "t::old": "failed"}, True),
        ({}, None),
    ],
)
async def test_an_instance_that_cannot_judge_says_nothing_of_a_patch(
    before: dict[str, str], failed: bool | None
) -> None:
    """It is our trouble, with the reason."""
    instance = replace(INSTANCE, fail_to_pass=("t::new",), pass_to_pass=("t::old",))
    suite = ToySuite(before=before, canaries=lambda _: {})
    grade = await graded(ScriptedDriver(FILES), suite=suite, instance=instance)
    assert (grade.name, grade.failed_before) == ("infrastructure", failed)
    assert "The task cannot judge: " in grade.detail


async def test_a_patch_of_hidden_tests_becomes_files() -> None:
    """As SWE-bench brings them: made from the base, then copied over what the patch left."""
    patch = CHEAT.decode()
    instance = replace(INSTANCE, hidden_tests={}, test_patch=patch)
    walls = ScriptedDriver(FILES)
    suite = ToySuite(before={"tests/test_calc.py::test_a": "failed"})
    grade = await graded(walls, RIGHT + CHEAT, suite=suite, instance=instance)
    assert grade.name == "resolved"
    assert walls.sandboxes[-1].files["tests/test_calc.py"].data == b"b\n"


async def test_a_test_file_that_the_fix_removes_is_removed() -> None:
    """Its tests would fail with the fix."""
    instance = replace(INSTANCE, hidden_tests={**INSTANCE.hidden_tests, "tests/test_calc.py": None})
    walls = ScriptedDriver(FILES)
    assert (await graded(walls, instance=instance)).name == "resolved"
    assert "tests/test_calc.py" not in walls.sandboxes[-1].files


async def test_files_that_the_commit_lacks_are_put_in_place() -> None:
    """But not over what the patch made of them."""
    instance = replace(INSTANCE, extra_files={"_version.py": "v", "calc.py": "a\n"})
    walls = ScriptedDriver(FILES)
    assert (await graded(walls, instance=instance)).name == "resolved"
    assert walls.sandboxes[-1].files["_version.py"].data == b"v"


async def test_tests_are_guarded_and_limited_in_cpu_seconds() -> None:
    """A busy machine may take some times as long by the clock."""
    suite = ToySuite()
    await graded(ScriptedDriver(FILES), suite=suite)
    assert suite.limits == [27, 27]
    for line in suite.lines:
        assert "ulimit -t 9" in line
        assert "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1" in line
        assert "PYTEST_ADDOPTS='-p turnout_report --tb=no'" in line
        assert line.endswith("pytest --maxfail=0 --continue-on-collection-errors")


@pytest.mark.parametrize(
    "ended",
    [
        TestReport("pytest", None, (), (), 27.0, "", timed_out=True),
        TestReport("pytest", None, (), (), 1.0, ""),
    ],
)
async def test_tests_that_do_not_come_to_their_end_are_not_passed(ended: TestReport) -> None:
    """Whatever was reported until then."""
    assert (await graded(ScriptedDriver(FILES), suite=ToySuite(ended=ended))).name == "unresolved"


@pytest.mark.parametrize("failure", [RepositoryError("gone"), SandboxDiedError("dead")])
async def test_our_own_trouble_is_no_verdict_on_the_patch(failure: Exception) -> None:
    """It has a class of its own."""
    grade = await graded(ScriptedDriver(FILES, failure=failure))
    assert grade.name == "infrastructure"
    assert str(failure) in grade.detail


async def test_a_sandbox_that_dies_is_replaced() -> None:
    """Twice; then it is our trouble."""
    died: list[ScriptedSandbox] = []

    def die_once(sandbox: ScriptedSandbox) -> None:
        if not died:
            died.append(sandbox)
            sandbox.die()

    assert (await graded(ScriptedDriver(FILES, script=die_once))).name == "resolved"


async def test_without_tests_to_keep_those_that_passed_before_must_go_on() -> None:
    """A patch that breaks every other test has resolved nothing."""
    instance = replace(INSTANCE, fail_to_pass=("tests/test_hidden.py::test_h",))
    suite = ToySuite(after={**MENDED, "tests/test_calc.py::test_a": "failed"})
    grade = await graded(ScriptedDriver(FILES), suite=suite, instance=instance)
    assert (grade.name, grade.lost) == ("unresolved", ("tests/test_calc.py::test_a",))


async def test_names_that_hold_the_time_of_day_are_not_lost() -> None:
    """As many others of the same test stand for them; fewer do not."""
    instance = replace(INSTANCE, fail_to_pass=("t::new",))
    before = {"t::new": "failed", "t::at[12:00]": "passed", "t::at[12:01]": "passed"}
    later = {"t::new": "passed", "t::at[12:02]": "passed", "t::at[12:03]": "passed"}
    suite = ToySuite(before=before, after=later)
    assert (await graded(ScriptedDriver(FILES), suite=suite, instance=instance)).name == "resolved"
    suite = ToySuite(before=before, after={**later, "t::at[12:03]": "failed"})
    grade = await graded(ScriptedDriver(FILES), suite=suite, instance=instance)
    assert (grade.name, grade.lost) == ("unresolved", ("t::at[12:00]", "t::at[12:01]"))
