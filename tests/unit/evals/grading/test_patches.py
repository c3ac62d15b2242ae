"""A patch without what judges it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.evals.grading.patches import (
    Kept,
    added_lines,
    judging_paths,
    may_be_source,
    patched_paths,
    sources_among,
    without_tests,
)
from turnout.sandbox.testrun import TestPaths


def section(path: str, *, old: str | None = None) -> bytes:
    """Write the change of one file as git does."""
    return (
        f"diff --git a/{old or path} b/{path}\nindex 1..2 100644\n--- a/{old or path}\n"
        f"+++ b/{path}\n@@ -1 +1,2 @@\n-diff --git a/x b/x\n+a\n+b\n"
    ).encode()


def test_source_stays_byte_for_byte() -> None:
    """Lines of the files that look like headers are no headers."""
    diff = section("src/a.py") + section("b.py")
    kept = without_tests(diff)
    assert kept.diff == diff
    assert kept.paths == ("src/a.py", "b.py")
    assert not kept.touched


@pytest.mark.parametrize("path", ["tests/test_a.py", "test_a.py", "hidden/check.py"])
def test_changes_to_tests_are_left_out(path: str) -> None:
    """Those that judge count whatever they are called."""
    kept = without_tests(section(path) + section("a.py"), frozenset({"hidden/check.py"}))
    assert (kept.diff, kept.tests, kept.touched) == (section("a.py"), (path,), True)


@pytest.mark.parametrize(
    "path",
    [
        "conftest.py",
        "pkg/conftest.py",
        "tests/conftest.py",
        "pytest.ini",
        "sitecustomize.py",
        "evil.pth",
        "evil-1.dist-info/entry_points.txt",
        "tests/__pycache__/test_a.cpython-311.pyc",
    ],
)
def test_what_controls_tests_is_left_out(path: str) -> None:
    """Each could turn a failure into a pass."""
    kept = without_tests(section(path) + section("a.py"))
    assert (kept.diff, kept.control, kept.touched) == (section("a.py"), (path,), True)


@pytest.mark.parametrize("path", ["json.py", "src/pytest/__init__.py", "turnout_report.py"])
def test_a_new_module_that_stands_in_for_another_is_left_out(path: str) -> None:
    """One that was there before is code like any other."""
    new = section(path).replace(b"index 1..2 100644", b"new file mode 100644")
    new = new.replace(f"--- a/{path}".encode(), b"--- /dev/null")
    assert without_tests(new).control == (path,)
    assert without_tests(section(path)).diff == section(path)


@pytest.mark.parametrize("path", ["anyio/__init__.py", "src/anyio.py"])
def test_a_new_module_that_stands_in_for_a_plugin_is_left_out(path: str) -> None:
    """It would be imported in its place; without such a plugin it is code like any other."""
    new = section(path).replace(f"--- a/{path}".encode(), b"--- /dev/null")
    assert without_tests(new, plugins=("anyio",)).control == (path,)
    assert without_tests(new).diff == new


def test_a_new_module_that_is_merely_called_after_the_runner_stays() -> None:
    """Where it is known which plugins there are."""
    new = section("pytest_pages.py").replace(b"--- a/pytest_pages.py", b"--- /dev/null")
    assert without_tests(new).diff == new
    assert without_tests(new, plugins=("pytest_pages",)).diff == b""


TREE = (
    *("app/test.py", "app/tests.py", "app/spec/core.py", "app/test/client.py", "test.py"),
    *("lib/tests/helpers.py", "lib/tests/test_a.py", "lib/test/used.py", "tests/helpers.py"),
    *("src/tests/util.py", "src/lib/test.py", "lib/test_names.py", "lib/conftest.py", "lib/a.py"),
)
SOURCES = {"app/test.py", "app/spec/core.py", "app/test/client.py", "src/lib/test.py"}


def test_sources_that_are_called_as_tests_are_known() -> None:
    """None of which a test was heard, and none that lies beside tests or at the top."""
    heard = {"app/tests.py", "lib/test/used.py", "lib/tests/test_a.py"}
    assert sources_among(TREE, heard) == SOURCES
    assert sources_among(TREE, heard, TestPaths(("app/",))) == frozenset()
    assert not any(may_be_source(path) for path in ("test.py", "tests/helpers.py", "lib/a.py"))
    kept = without_tests(section("app/test.py"), sources=SOURCES)
    assert (kept.paths, kept.tests) == (("app/test.py",), ())
    assert without_tests(section("app/test.py"), {"app/test.py"}, sources=SOURCES).tests


def test_both_names_of_a_rename_are_patched() -> None:
    """The files of a known fix are sources by either."""
    assert patched_paths(section("b.py", old="a.py")) == {"a.py", "b.py"}


def test_files_known_to_steer_are_left_out() -> None:
    """Whoever has read them says so."""
    kept = without_tests(section("setup.cfg"), steered={"setup.cfg"})
    assert (kept.diff, kept.control) == (b"", ("setup.cfg",))


def test_new_tests_are_left_out_and_nobody_is_blamed() -> None:
    """They may do what they like to the others."""
    new = section("tests/test_new.py").replace(b"--- a/tests/test_new.py", b"--- /dev/null")
    kept = without_tests(new)
    assert (kept.diff, kept.added, kept.touched) == (b"", ("tests/test_new.py",), False)


def test_a_test_that_is_moved_away_is_dropped() -> None:
    """Both names of a rename count."""
    kept = without_tests(section("lib.py", old="tests/test_a.py"))
    assert kept.diff == b""
    assert kept.tests == ("tests/test_a.py",)


def test_no_patch_is_no_patch() -> None:
    """Nothing is dropped from nothing."""
    assert without_tests(b"").diff == b""


def test_what_is_a_test_follows_the_settings() -> None:
    """What steers the runner is left out all the same."""
    diff = section("qa/a.txt") + section("tests/test_a.py") + section("conftest.py")
    kept = without_tests(diff, tests=TestPaths(("qa/",)))
    assert (kept.tests, kept.control) == (("qa/a.txt",), ("conftest.py",))
    assert kept.diff == section("tests/test_a.py")


def test_the_files_of_tests_are_told_by_their_ids() -> None:
    """The test of a docstring belongs to the code that it describes."""
    ids = ["tests/test_a.py::test_one[a b::c.d]", "lib.py::lib.f", "t.py::TestX::test_y", "x.py"]
    assert list(judging_paths(ids)) == ["tests/test_a.py", "t.py"]


def test_added_lines_come_with_their_file() -> None:
    """Headers are no lines."""
    assert list(added_lines(section("a.py"))) == [("a.py", "a"), ("a.py", "b")]


CODE = ("a.py", "src/b.py", "README.md", "conf test.txt", "pages/conftest.py.txt")
JUDGES = ("tests/test_a.py", "conftest.py", "x/pytest.ini", "hidden/check.py")


@given(st.lists(st.sampled_from(CODE + JUDGES), unique=True))
def test_every_change_is_either_kept_as_it_was_or_named(paths: list[str]) -> None:
    """In any order, and nothing twice."""
    kept = without_tests(b"".join(map(section, paths)), {"hidden/check.py"})
    assert kept.diff == b"".join(section(path) for path in paths if path in CODE)
    assert kept.paths == tuple(path for path in paths if path in CODE)
    assert sorted((*kept.tests, *kept.control)) == sorted(p for p in paths if p in JUDGES)
    assert without_tests(kept.diff) == Kept(kept.diff, kept.paths)
