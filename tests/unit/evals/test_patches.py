"""A patch without what judges it."""

import pytest

from turnout.evals.patches import without_tests
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
    assert kept.dropped == ()


@pytest.mark.parametrize(
    "path",
    [
        "tests/test_a.py",
        "test_a.py",
        "conftest.py",
        "pkg/conftest.py",
        "pytest.ini",
        "setup.cfg",
        "pyproject.toml",
        "tox.ini",
        "sitecustomize.py",
        "evil.pth",
        "hidden/check.py",
    ],
)
def test_tests_and_their_control_are_dropped(path: str) -> None:
    """Each could turn a failure into a pass."""
    kept = without_tests(section(path) + section("a.py"), frozenset({"hidden/check.py"}))
    assert kept.diff == section("a.py")
    assert kept.dropped == (path,)


def test_a_test_that_is_moved_away_is_dropped() -> None:
    """Both names of a rename count."""
    kept = without_tests(section("lib.py", old="tests/test_a.py"))
    assert kept.diff == b""
    assert "tests/test_a.py" in kept.dropped


def test_no_patch_is_no_patch() -> None:
    """Nothing is dropped from nothing."""
    assert without_tests(b"").diff == b""


def test_what_is_a_test_follows_the_settings() -> None:
    """What steers the runner is left out all the same."""
    diff = section("qa/a.txt") + section("tests/test_a.py") + section("conftest.py")
    kept = without_tests(diff, tests=TestPaths(("qa/",)))
    assert kept.dropped == ("qa/a.txt", "conftest.py")
    assert kept.diff == section("tests/test_a.py")
