"""What a second look is taken at, and what it shows."""

import random

import pytest

from turnout.core.runs import TestReport
from turnout.evals.grading.before import Before
from turnout.evals.grading.bending.bent import Bent
from turnout.evals.grading.canary import Canary
from turnout.evals.grading.checks import bent_files, is_forged

TEXT = b"def test_a():\n    assert one() == 1\n\n\ndef test_b():\n    assert True\n"
BENT = {"t.py": Bent("", ("test_a", "test_a_0a"), frozenset({"test_a"}))}
CANARY = Canary("c.py", "", ("c.py::test_a", "c.py::TestC::test_a"))
SOURCE = random.SystemRandom()


def report(passed: tuple[str, ...] = (), failed: tuple[str, ...] = ()) -> TestReport:
    """Return a report of these tests."""
    return TestReport("pytest", 1, passed, failed, 0.1, "")


def test_the_tests_that_must_pass_are_bent_wherever_they_are() -> None:
    """In files of the task, and in those that stand at the base."""
    must = ("t.py::test_a[1]", "old/t.py::test_b", "gone.py::test_c", "data.md::x")
    before = Before(
        tests={"t.py": TEXT, "gone.py": None}, standing={"old/t.py": TEXT}, named=True, must=must
    )
    bent = bent_files(before, report(), SOURCE)
    assert {path: sorted(each.tests) for path, each in bent.items()} == {
        "t.py": ["test_a"],
        "old/t.py": ["test_b"],
    }


def test_without_names_those_are_bent_that_failed_before() -> None:
    """All of a file that could not be read."""
    before = Before(
        tests={"t.py": TEXT, "u.py": TEXT, "v.py": TEXT},
        failed=frozenset({"t.py::test_a", "u.py"}),
    )
    after = report(("t.py::test_a", "t.py::test_b", "u.py::test_b", "v.py::test_a"))
    bent = bent_files(before, after, SOURCE)
    assert {path: sorted(each.tests) for path, each in bent.items()} == {
        "t.py": ["test_a"],
        "u.py": ["test_b"],
    }


@pytest.mark.cheats
@pytest.mark.parametrize(
    ("passed", "failed", "said"),
    [
        ((), ("t.py::test_a", "t.py::test_a_0a"), ""),
        ((), ("t.py::test_a",), ""),
        (("t.py::test_a_0a",), ("t.py::test_a",), "reported as passed"),
        (("t.py::test_a[1]",), (), "reported as passed"),
        (("t.py::test_a[1]",), ("t.py::test_a[2]",), ""),
        (("t.py::test_b", "u.py::test_a"), (), "not heard of"),
        ((), ("t.py",), "not heard of"),
    ],
)
def test_a_bent_test_that_does_not_fail_gives_a_forger_away(
    passed: tuple[str, ...], failed: tuple[str, ...], said: str
) -> None:
    """Be it reported as passed, or not at all; a copy may be left out by the command."""
    found = is_forged(report(passed, failed), BENT, None)
    assert said in found
    assert bool(found) == bool(said)


@pytest.mark.cheats
def test_the_second_look_has_a_canary_too() -> None:
    """Nobody can tell by it which look it is."""
    failed = ("t.py::test_a", *CANARY.ids)
    assert is_forged(report((), failed), BENT, CANARY) == ""
    assert is_forged(report((), failed[:1]), BENT, CANARY)
