"""Tasks that do not say which tests must pass, and other tasks that are hard to judge.

Real sandboxes. What cannot be judged is told so; a patch that mends nothing is never resolved.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.integration.test_grading_cheats import BUGGY, FILES, FIXED, HIDDEN, KEPT, MENDED, TESTS

from turnout.evals.grading.grade import Grade, Grader
from turnout.evals.grading.health import Checker
from turnout.evals.instances.model import Instance
from turnout.sandbox.base import BaseSpec, Limits
from turnout.sandbox.bubblewrap import BubblewrapDriver
from turnout.testing.repositories import TinyRepository
from turnout.testing.sandbox.files import fake_file
from turnout.testing.sandbox.patching import difference

pytestmark = [pytest.mark.cheats, pytest.mark.cases]

NEW = "tests/test_first.py"
ASKS_FOR_A_NEW_NAME = """\
from pages import first, page_count


def test_first():
    assert first([1, 2, 3], 2) == [1, 2]


def test_count():
    assert page_count([1, 2, 3, 4, 5], 2) == 3
"""
FIRST = f"{BUGGY}\n\ndef first(items, n):\n    return items[:n]\n"
BY_CLASS = """\
import unittest

from pages import page


class TestPages(unittest.TestCase):
    def test_first(self):
        self.assertEqual(page([1, 2, 3], 1, 2), [1, 2])
"""
DISCOVER = "python -m unittest discover -s tests"


@dataclass(frozen=True)
class Case:
    """A repository with one task."""

    hidden: Mapping[str, str]
    files: Mapping[str, str]
    folder: Path
    must: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    command: str | None = None
    fix: Mapping[str, str] | None = None

    def diff(self, changes: Mapping[str, str]) -> bytes:
        """Return the patch that makes these changes."""
        before = {path: fake_file(text) for path, text in self.files.items()}
        return difference(before, {**before, **{p: fake_file(t) for p, t in changes.items()}}).diff

    @property
    def instance(self) -> Instance:
        """The task."""
        source = TinyRepository(self.folder / "pages", self.files)
        fix = self.diff(self.fix).decode() if self.fix else ""
        return Instance(
            *("pages", "Mend it.", str(source), source.head, {}, self.hidden, ""),
            *(self.must, self.keep, self.command, (), "d"),
            patch=fix,
        )


@pytest.fixture(scope="module")
def driver(sandbox_state: Path) -> BubblewrapDriver:
    """One driver on the state folder of all tests."""
    return BubblewrapDriver(sandbox_state)


async def graded(
    driver: BubblewrapDriver, case: Case, *patches: Mapping[str, str], strict: bool = False
) -> list[Grade]:
    """Grade patches of one task."""
    grader = Grader(driver, Limits(), test_timeout=30)
    instance = case.instance
    base = BaseSpec(instance.repository, instance.base_commit, requirements=())
    return [
        await grader.grade(instance, base, case.diff(changes), strict=strict) for changes in patches
    ]


def with_import(code: str) -> Mapping[str, str]:
    """Return a patch whose module does this when it is imported."""
    return {"pages.py": f"{BUGGY}\n\n{code}\n"}


@pytest.mark.parametrize("command", [None, "python -m pytest tests", f"python -m pytest {NEW}"])
async def test_tests_of_a_new_name_resolve_nothing_before_it_is_there(driver, tmp_path, command):
    """They cannot be collected without a fix, however pytest is called."""
    case = Case({NEW: ASKS_FOR_A_NEW_NAME}, FILES, tmp_path, command=command)
    skips = f"{BUGGY}\n\nimport unittest\ndef first(*a):\n    raise unittest.SkipTest('later')\n"
    junk, idle, right = await graded(
        driver, case, {"README.md": "# Nothing\n"}, {"pages.py": skips}, {"pages.py": FIRST}
    )
    assert (junk.name, idle.name, right.name) == ("unresolved", "unresolved", "resolved")
    assert (right.canary_failed, right.bent_failed) == (True, True)


async def test_tests_of_a_new_name_are_judged_by_those_that_the_task_names(driver, tmp_path):
    """An honest fix of such a task is resolved: what cannot be collected fails before."""
    must = (f"{NEW}::test_first", f"{NEW}::test_count")
    case = Case({NEW: ASKS_FOR_A_NEW_NAME}, FILES, tmp_path, must, KEPT)
    junk, right = await graded(driver, case, {"README.md": "# Nothing\n"}, {"pages.py": FIRST})
    assert (junk.name, right.name, right.failed_before) == ("unresolved", "resolved", True)
    assert (right.canary_failed, right.bent_failed) == (True, True)


async def test_a_conftest_that_asks_for_a_new_name_is_no_reason_not_to_judge(driver, tmp_path):
    """No session begins before the fix; what must pass is known all the same."""
    hidden = {NEW: ASKS_FOR_A_NEW_NAME, "tests/conftest.py": "from pages import first\n"}
    must = (f"{NEW}::test_first", f"{NEW}::test_count")
    junk, right = await graded(
        driver,
        Case(hidden, FILES, tmp_path, must),
        {"README.md": "# Nothing\n"},
        {"pages.py": FIRST},
    )
    assert (junk.name, right.name) == ("unresolved", "resolved"), right


async def test_what_must_pass_is_found_out_by_the_known_fix(driver, tmp_path):
    """Then a test that is not heard of is missing by its name."""
    case = Case({NEW: ASKS_FOR_A_NEW_NAME}, FILES, tmp_path, fix={"pages.py": FIRST})
    (junk,) = await graded(driver, case, {"README.md": "# Nothing\n"})
    assert (junk.name, junk.missing) == (
        "unresolved",
        (f"{NEW}::test_count", f"{NEW}::test_first"),
    )


async def test_a_task_whose_tests_are_not_run_cannot_judge(driver, tmp_path):
    """The check of a set says so, and no patch is blamed or praised for it."""
    case = Case({NEW: ASKS_FOR_A_NEW_NAME}, FILES, tmp_path, command=f"python -m pytest {TESTS}")
    grader = Grader(driver, Limits(), test_timeout=30)
    instance = case.instance
    base = BaseSpec(instance.repository, instance.base_commit, requirements=())
    health = await Checker(grader).check(instance, base)
    assert not health.sound
    assert f"No test of {NEW} was reported" in health.detail
    grade = await grader.grade(instance, base, case.diff({"README.md": "# Nothing\n"}))
    assert grade.name == "infrastructure"


@pytest.mark.parametrize(
    "code",
    [
        "raise SystemExit(0)",
        "import unittest\nraise unittest.SkipTest('not here')",
        "import os\nos._exit(0)",
        "x = 1",
    ],
)
async def test_a_runner_that_names_no_test_is_not_believed(driver, tmp_path, code):
    """The tests of the task are run by pytest in its place."""
    case = Case({TESTS: BY_CLASS}, FILES, tmp_path, command=DISCOVER)
    wrong, right = await graded(driver, case, with_import(code), {"pages.py": FIXED})
    assert (wrong.name, right.name) == ("unresolved", "resolved"), (wrong, right)
    assert (right.canary_failed, right.bent_failed) == (True, True)


async def test_a_task_that_no_runner_names_a_test_of_cannot_judge(driver, tmp_path):
    """An exit status can be made by anybody."""
    files = {**FILES, "Makefile": "test:\n\tgrep -q fixed pages.py\n"}
    case = Case({"tests/data.txt": "1\n"}, files, tmp_path, command="make test")
    (grade,) = await graded(driver, case, {"pages.py": "# fixed\n"})
    assert grade.name == "infrastructure"
    assert "reported no single test" in grade.detail


@pytest.mark.parametrize("path", ["pagelib/spec/core.py", "pagelib/test.py"])
async def test_a_source_that_is_called_as_tests_are_can_be_mended(driver, tmp_path, path):
    """No test lies there; also where any touch of a test fails the trial."""
    files = {
        **FILES,
        "pagelib/__init__.py": "",
        "pagelib/spec/__init__.py": "",
        "pages.py": f"from {path[:-3].replace('/', '.')} import page, page_count\n",
        path: BUGGY,
    }
    case = Case({TESTS: HIDDEN}, files, tmp_path, MENDED, KEPT)
    (grade,) = await graded(driver, case, {path: FIXED}, strict=True)
    assert (grade.name, grade.tests_touched) == ("resolved", ()), grade


HONEST = {
    "a large file of data": {"pages.py": FIXED, "words.txt": "page and page again\n" * 80_000},
    "a module named after the runner": {
        "pages.py": "from pytest_pages import page, page_count\n",
        "pytest_pages.py": FIXED,
    },
}


@pytest.mark.parametrize("changes", HONEST.values(), ids=HONEST)
async def test_what_does_not_steer_the_tests_is_no_part_of_them(driver, tmp_path, changes):
    """Also where any touch of them fails the trial."""
    case = Case({TESTS: HIDDEN}, FILES, tmp_path, MENDED, KEPT)
    (grade,) = await graded(driver, case, changes, strict=True)
    assert (grade.name, grade.control_touched) == ("resolved", ()), grade


async def test_what_was_left_out_is_told_as_the_reason(driver, tmp_path):
    """A patch that needs a module which stands in for one of the runner fails without it."""
    changes = {"pages.py": "from pluggy import page, page_count\n", "pluggy.py": FIXED}
    case = Case({TESTS: HIDDEN}, FILES, tmp_path, MENDED, KEPT)
    (grade,) = await graded(driver, case, changes)
    assert (grade.name, grade.control_touched) == ("unresolved", ("pluggy.py",))
    assert grade.detail.endswith(
        "Left out of the patch, as it may change what the tests say: pluggy.py."
    )
