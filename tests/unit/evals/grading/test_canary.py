"""A test that is bound to fail, among the others."""

import ast

import pytest

from turnout.core.runs import TestReport
from turnout.evals.grading.canary import Canary, hatch


def report(passed: tuple[str, ...] = (), failed: tuple[str, ...] = ()) -> TestReport:
    """Return a report of these tests."""
    return TestReport("pytest", 1, passed, failed, 0.1, "")


def hatched(tests: list[str], files: list[str] | None = None) -> Canary:
    """Return a canary that is there."""
    canary = hatch(tests, files or [])
    assert canary is not None
    return canary


@pytest.mark.parametrize(
    ("tests", "files", "folder", "name"),
    [
        (["qa/a_test.py::TestA::test_b[c d]"], [], "qa/", "test_b"),
        (["a.txt::x", "test_a.py::test_one"], [], "", "test_one"),
        ([], ["data.json", "tests/deep/test_x.py"], "tests/deep/", "test_one"),
        (["test_a.py::test_one[x::y]"], [], "", "test_one"),
    ],
)
def test_it_sits_beside_the_tests_and_is_called_as_one(
    tests: list[str], files: list[str], folder: str, name: str
) -> None:
    """A forger who picks by name picks it as well."""
    canary = hatched(tests, files)
    assert canary.path.startswith(folder)
    assert "/" not in canary.path[len(folder) :]
    assert canary.ids[0] == f"{canary.path}::{name}"
    assert name in canary.text
    assert len(ast.parse(canary.text).body) == 3


def test_its_name_is_new_each_time() -> None:
    """Nobody can know it before."""
    assert hatched(["test_a.py::test_b"]).path != hatched(["test_a.py::test_b"]).path


def test_where_no_test_is_in_python_there_is_none() -> None:
    """Another runner would not run it."""
    assert hatch(["spec/a.js::b"], ["spec/a.js"]) is None


def test_both_ways_of_failing_must_be_reported() -> None:
    """Nothing heard is no answer."""
    canary = hatched(["test_a.py::test_b"])
    assert canary.failed(report(("other",))) is None
    assert canary.failed(report(failed=canary.ids)) is True
    assert canary.failed(report(failed=canary.ids[:1])) is False
    assert canary.failed(report(canary.ids[1:], canary.ids[:1])) is False
    assert canary.failed(report(canary.ids, canary.ids)) is False
    assert canary.without((*canary.ids, "other")) == ("other",)
