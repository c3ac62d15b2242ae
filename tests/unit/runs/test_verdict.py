"""The verdict as a table: reports before and after, patch and test files in, judgement out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.runs.parts import FAILING, NO_PATCH, PASSING, PATCH, report_of

from turnout.core.runs import FileChange, Patch, TestReport
from turnout.runs.verdict import judge
from turnout.sandbox.testrun import TestPaths

NONE_FOUND = report_of(exit_code=5, found=False)


def patch_of(path: str, status: str = "modified") -> Patch:
    """Return a patch of one file."""
    return Patch(b"diff", (FileChange(path, status, 1, 1),))


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        (FAILING, PASSING, "resolved"),
        (PASSING, PASSING, "no_regression"),
        (FAILING, FAILING, "not_resolved"),
        (PASSING, FAILING, "not_resolved"),
        (FAILING, None, "not_resolved"),
        (FAILING, report_of(PASSING.passed, timed_out=True), "not_resolved"),
        (FAILING, report_of(PASSING.passed, exit_code=1), "not_resolved"),
        (FAILING, NONE_FOUND, "not_resolved"),
        (report_of(exit_code=1), report_of(exit_code=0), "resolved"),
        (report_of(exit_code=1), report_of(exit_code=1), "not_resolved"),
        (report_of(exit_code=None, timed_out=True), PASSING, "resolved"),
        (None, None, "no_tests"),
        (NONE_FOUND, NONE_FOUND, "no_tests"),
        (NONE_FOUND, PASSING, "no_tests"),
    ],
)
def test_reports_decide(before: TestReport | None, after: TestReport | None, name: str) -> None:
    """With a patch that leaves the tests alone, the two runs alone decide."""
    verdict = judge(before, after, PATCH, ("t.py",))
    assert verdict.name == name
    assert verdict.tests_untouched


def test_progress_is_told_in_numbers() -> None:
    """A partial success says what is left."""
    before = report_of(["t.py::ok"], ["t.py::a", "t.py::b", "t.py::c"])
    after = report_of(["t.py::ok", "t.py::a", "t.py::b"], ["t.py::c"])
    detail = judge(before, after, PATCH, ()).detail
    assert detail == "2 of 3 failing tests pass now; 1 still fails: t.py::c."


@pytest.mark.parametrize(("code", "name"), [(1, "resolved"), (0, "no_regression")])
def test_a_verdict_by_the_exit_status_alone_says_so(code: int, name: str) -> None:
    """A command that runs nothing, or another runner than pytest, names no test."""
    verdict = judge(report_of(exit_code=code), report_of(exit_code=0), PATCH, ())
    assert verdict.name == name
    assert "Only the exit status of `" in verdict.detail
    assert "Only" not in judge(FAILING, PASSING, PATCH, ()).detail


def test_a_test_that_no_longer_runs_is_not_passed() -> None:
    """Removing a test from the run does not make it pass."""
    verdict = judge(FAILING, report_of(["t.py::b"]), PATCH, ())
    assert verdict.name == "not_resolved"
    assert "did not run: t.py::a" in verdict.detail


def test_a_failing_test_that_vanishes_still_fails() -> None:
    """Nor does skipping the one that failed."""
    assert judge(FAILING, report_of(["t.py::a"]), PATCH, ()).name == "not_resolved"


def test_a_file_that_could_not_be_collected_is_mended_by_its_tests() -> None:
    """Its own name gives way to the names of what is inside."""
    before = report_of(["u.py::x"], ["t.py"])
    after = report_of(["u.py::x", "t.py::a", "t.py::b"])
    assert judge(before, after, PATCH, ()).name == "resolved"


def test_a_failure_inside_such_a_file_is_no_regression_but_no_success() -> None:
    """It was hidden before; it counts as still failing."""
    before = report_of([], ["t.py"])
    verdict = judge(before, report_of(["t.py::a"], ["t.py::b"]), PATCH, ())
    assert verdict.name == "not_resolved"
    assert "broken" not in verdict.detail


@pytest.mark.parametrize("status", ["modified", "deleted", "type_changed"])
def test_changing_an_existing_test_file_is_named(status: str) -> None:
    """Whatever the tests then say."""
    verdict = judge(FAILING, PASSING, patch_of("t.py", status), ("t.py",))
    assert (verdict.name, verdict.touched) == ("tests_touched", ("t.py",))
    assert not verdict.tests_untouched


def test_a_test_file_that_was_made_is_no_new_one() -> None:
    """Its tests ran before: a set-up command made it, and a patch that has it takes its place."""
    before = report_of(["gen/test_a.py::ok"], ["t.py::a"])
    after = report_of(["gen/test_a.py::ok", "t.py::a"])
    verdict = judge(before, after, patch_of("gen/test_a.py", "added"), ("t.py",))
    assert (verdict.name, verdict.touched) == ("tests_touched", ("gen/test_a.py",))


def test_a_new_test_file_is_welcome() -> None:
    """Tests may be added."""
    verdict = judge(FAILING, PASSING, patch_of("tests/test_new.py", "added"), ("t.py",))
    assert (verdict.name, verdict.new_tests) == ("resolved", ("tests/test_new.py",))


def test_what_is_a_new_test_follows_the_settings() -> None:
    """A file that steers the tests is touched, and no new test; changed ones are none either."""
    paths = TestPaths(("qa/",))
    changes = [("qa/a.txt", "added"), ("qa/b", "modified"), ("tests/test_c.py", "added")]
    patch = Patch(b"diff", tuple(FileChange(path, kind, 1, 1) for path, kind in changes))
    assert judge(FAILING, PASSING, patch, (), paths=paths).new_tests == ("qa/a.txt",)
    steering = judge(FAILING, PASSING, patch_of("qa/conftest.py", "added"), (), paths=paths)
    assert (steering.touched, steering.new_tests) == (("qa/conftest.py",), ())


@pytest.mark.cheats
@pytest.mark.parametrize(
    "path",
    [
        *("conftest.py", "tests/conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml"),
        *("x.pth", "sub/sitecustomize.py", "x.dist-info/entry_points.txt", "jest.config.mjs"),
        *("tests/__pycache__/test_pages.cpython-311.pyc", "turnout_report.py", "json.py"),
        *("src/_pytest/__init__.py", "pluggy/__init__.py", "json.cpython-311-x86_64-linux-gnu.so"),
    ],
)
def test_a_new_file_that_steers_the_tests_counts_as_touching_them(path: str) -> None:
    """A hook that turns failures into passes needs no change to a test file."""
    assert judge(FAILING, PASSING, patch_of(path, "added"), ()).name == "tests_touched"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        *(("tests/test_new.py", "added"), ("test/__init__.py", "added"), ("conftests.py", "added")),
        *(("pages/json.py", "added"), ("json/data.txt", "added"), ("src/pluggy/hooks.py", "added")),
        *(("json.py", "modified"), ("docs/entry_points.md", "added"), ("tests.pyi", "added")),
    ],
)
def test_what_only_looks_like_it_is_not_held_against_a_patch(path: str, status: str) -> None:
    """Modules of a package, data, and a file that was there before under such a name."""
    assert judge(FAILING, PASSING, patch_of(path, status), ()).name == "resolved"


@pytest.mark.cheats
def test_settings_that_steer_the_tests_count_as_touched() -> None:
    """Whatever else the file holds."""
    verdict = judge(FAILING, PASSING, patch_of("a.toml"), (), steered=("a.toml",))
    assert (verdict.name, verdict.touched) == ("tests_touched", ("a.toml",))


@pytest.mark.cheats
def test_a_test_file_is_one_whose_tests_ran() -> None:
    """Its name may be any; code whose docstrings are tested is still code."""
    before = report_of(["checks/pages.py::check_a[x.y]", "pages.py::pages.page"], ["t.py::b"])
    after = report_of([*before.passed, *before.failed])
    assert judge(before, after, patch_of("checks/pages.py"), ()).name == "tests_touched"
    assert judge(before, after, patch_of("pages.py"), ()).name == "resolved"


@pytest.mark.cheats
def test_a_test_file_with_a_name_that_is_no_text_is_known() -> None:
    """Listings and patches write such names in different ways."""
    verdict = judge(FAILING, PASSING, patch_of("test_\\xff.py"), ("test_\udcff.py",))
    assert verdict.name == "tests_touched"


@pytest.mark.cases
@pytest.mark.cases
def test_changes_that_no_diff_holds_are_no_success_and_are_named() -> None:
    """A submodule, say: nobody is told that nothing was done."""
    verdict = judge(FAILING, None, Patch(b"", (), ("mod/", "emb/")), ())
    assert verdict.name == "not_resolved"
    assert verdict.detail == "Nothing was changed but what no diff holds: mod/, emb/."


def test_no_change_is_no_success() -> None:
    """Also where every test passed before."""
    assert judge(PASSING, None, NO_PATCH, ()).name == "not_resolved"
    assert judge(None, None, NO_PATCH, ()).name == "no_tests"


NAMES = st.lists(st.sampled_from([f"t.py::{c}" for c in "abcdef"]), unique=True)


@given(NAMES, NAMES, NAMES, NAMES)
def test_a_good_verdict_means_that_every_known_test_passes(
    good: list[str], bad: list[str], passed: list[str], failed: list[str]
) -> None:
    """No combination of reports is called good while a test that existed does not pass."""
    before = report_of([t for t in good if t not in bad], bad)
    after = report_of([t for t in passed if t not in failed], failed)
    verdict = judge(before, after, PATCH, ("t.py",))
    if verdict.name in {"resolved", "no_regression"}:
        assert {*before.passed, *before.failed} <= set(after.passed)
        assert not after.failed
        assert (verdict.name == "resolved") == bool(bad)
