"""What a second look is taken at, and what it shows."""

from dataclasses import replace

import pytest
from tests.unit.evals.grading.suites import INSTANCE

from turnout.core.runs import TestReport
from turnout.evals.grading.before import Before
from turnout.evals.grading.bent import Bent
from turnout.evals.grading.checks import bent_files, is_forged

TEXT = b"def test_a():\n    assert 1 == 1\n\n\ndef test_b():\n    assert True\n"
BENT = {"t.py": Bent("", ("test_a", "test_a_0a"))}


def report(passed: tuple[str, ...] = (), failed: tuple[str, ...] = ()) -> TestReport:
    """Return a report of these tests."""
    return TestReport("pytest", 1, passed, failed, 0.1, "")


def test_the_tests_that_must_pass_are_bent_wherever_they_are() -> None:
    """In files of the task, and in those that stand at the base."""
    must = ("t.py::test_a[1]", "old/t.py::test_b", "gone.py::test_c", "data.md::x")
    instance = replace(INSTANCE, fail_to_pass=must)
    before = Before(tests={"t.py": TEXT, "gone.py": None}, standing={"old/t.py": TEXT}, must=must)
    bent = bent_files(instance, before, report(), "0a")
    assert {path: sorted(each.tests) for path, each in bent.items()} == {
        "t.py": ["test_a", "test_a_0a"],
        "old/t.py": ["test_b"],
    }


def test_without_names_those_are_bent_that_failed_before() -> None:
    """All of a file that could not be read."""
    before = Before(
        tests={"t.py": TEXT, "u.py": TEXT, "v.py": TEXT},
        failed=frozenset({"t.py::test_a", "u.py"}),
    )
    after = report(("t.py::test_a", "t.py::test_b", "u.py::test_b", "v.py::test_a"))
    bent = bent_files(INSTANCE, before, after, "0a")
    assert {path: sorted(each.tests) for path, each in bent.items()} == {
        "t.py": ["test_a", "test_a_0a"],
        "u.py": ["test_b"],
    }


@pytest.mark.parametrize(
    ("passed", "failed", "forged"),
    [
        ((), ("t.py::test_a", "t.py::test_a_0a"), False),
        (("t.py::test_a_0a",), ("t.py::test_a",), True),
        (("t.py::test_a[1]",), (), True),
        (("t.py::test_a[1]",), ("t.py::test_a[2]",), False),
        (("t.py::test_b", "u.py::test_a"), (), None),
    ],
)
def test_a_bent_test_that_passes_gives_a_forger_away(
    passed: tuple[str, ...], failed: tuple[str, ...], forged: bool | None
) -> None:
    """Where none of them was heard of nothing is known."""
    assert is_forged(report(passed, failed), BENT) is forged
