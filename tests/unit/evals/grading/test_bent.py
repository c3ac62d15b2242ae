"""Tests bent so that no honest code passes them."""

import ast
import random
from collections.abc import Callable
from contextlib import nullcontext
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from turnout.evals.grading.bending.bent import Bent, bend

TEXT = """\
import unittest

import pytest


def test_plain():
    got = double(2)
    assert got == 4


@pytest.mark.parametrize("n", [1])
def test_in_a_loop(n=1):
    for one in (n, n):
        assert double(one)


def test_unwritten():
    assert double(2) == 2 + two


def test_raises():
    with pytest.raises(TypeError):
        double(None) + 1


def test_returns():
    return None


def test_yields():
    yield double


@forgiving
def test_forgiving():
    assert double(1) == 3


def test_twice():
    assert False


def test_twice():
    assert double(2) == 4


class TestMany(unittest.TestCase):
    def test_method(self):
        self.assertEqual(double(3), 6)

    def test_other(self):
        self.assertTrue(double(3))


class Mixin:
    def test_inherited(self):
        assert double(1) == 2

    def test_overridden(self):
        assert double(1) == 2


class TestLeast(Mixin, unittest.TestCase):
    def test_overridden(self):
        pass


@pytest.mark.parametrize("value, wanted", [(1, 2), pytest.param("a", "aa")])
def test_table(value, wanted):
    assert double(value) == wanted


def test_rows():
    for value, wanted in [(1, 2), ((), ())]:
        assert double(value) == wanted


def test_variable():
    wanted = {"a": [1.5, None]}
    with subtest():
        assert {"a": [double(0.75), None]} == wanted


def test_both_ways():
    data = [1, 2]
    assert double(data)[:2] == data


@pytest.mark.xfail
def test_expected_to_fail():
    assert double(2) == 5
"""
WANTED = (
    *("test_plain", "test_in_a_loop[1]", "test_raises", "test_returns", "test_yields"),
    *("test_table[1-2]", "test_rows", "test_variable", "test_both_ways", "test_expected_to_fail"),
    *("test_unwritten", "test_forgiving", "test_twice", "test_not_there", "TestMany::test_method"),
    *("TestLeast::test_inherited", "TestLeast::test_overridden", "Nowhere::test_method"),
)
EXPECTING = (
    *("test_plain", "test_table", "test_rows", "test_variable"),
    *("TestMany::test_method", "TestLeast::test_inherited"),
)
"""Those that expect another value, and are otherwise as they were."""
CONTRARY = ("test_in_a_loop", "test_raises", "test_unwritten", "test_both_ways")
COPIED = {"test_unwritten", "test_both_ways"}
SOURCE = random.SystemRandom()


class Anything:
    """Claims to equal everything."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


def double(value: Any) -> Any:
    """Return twice the value, honestly."""
    return value + value


def bent() -> Bent:
    """Bend the tests."""
    found = bend(TEXT, WANTED, SOURCE)
    assert found is not None
    return found


def run(folder: Path, found: Bent, name: str, function: Callable[[Any], Any]) -> None:
    """Run one bent test in this process."""
    (folder / "bent.py").write_text(found.text)
    spec = spec_from_file_location("bent", folder / "bent.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    module.__dict__.update(double=function, forgiving=lambda test: test, subtest=nullcontext)
    module.__dict__.update(two=2)
    spec.loader.exec_module(module)
    owner, _, method = name.rpartition("::")
    case = getattr(module, owner)(method) if owner else module
    test = getattr(case, method)
    marks = [mark for mark in getattr(test, "pytestmark", ()) if "," in mark.args[0]]
    rows = [row for mark in marks for row in mark.args[1]] or [()]
    for row in rows:
        test(*(row.values if hasattr(row, "values") else row))


def test_only_plain_tests_are_bent() -> None:
    """One that may return early, that something is wrapped around or that may fail is left."""
    found = bent()
    assert found.old == {*EXPECTING, *CONTRARY, "test_table"}
    copies = {name.rpartition("_")[0] for name in set(found.tests) - found.old}
    assert copies == COPIED


@pytest.mark.parametrize("name", EXPECTING + CONTRARY)
def test_honest_code_fails_every_bent_test(tmp_path: Path, name: str) -> None:
    """Whatever way the test asserts."""
    found = bent()
    for each in found.tests:
        if each == name or each.rpartition("_")[0] == name:
            with pytest.raises((AssertionError, pytest.fail.Exception)):
                run(tmp_path, found, each, double)


@pytest.mark.cheats
@pytest.mark.parametrize("name", EXPECTING)
def test_a_value_that_equals_all_of_its_kind_passes_where_nothing_may(
    tmp_path: Path, name: str
) -> None:
    """The test as it was would have believed it."""
    run(tmp_path, bent(), name, lambda _: Anything())


@pytest.mark.cheats
def test_a_value_that_equals_everything_passes_the_copy_of_a_test(tmp_path: Path) -> None:
    """Where what is expected is not written in it."""
    found = bent()
    (copy,) = (name for name in found.tests if name.startswith("test_unwritten_"))
    run(tmp_path, found, copy, lambda _: Anything())


@pytest.mark.cheats
def test_nothing_tells_a_test_that_expects_another_value_from_a_true_one() -> None:
    """It differs in the value alone, and in another one each time."""

    def of(text: str) -> ast.FunctionDef:
        return next(
            node
            for node in ast.parse(text).body
            if isinstance(node, ast.FunctionDef) and node.name == "test_plain"
        )

    texts = {ast.unparse(of(bent().text)) for _ in range(5)}
    assert len(texts) > 1
    assert {text.replace(text.split()[-1], "4") for text in texts} == {ast.unparse(of(TEXT))}


@pytest.mark.parametrize("text", ["def test_plain(:", "x = 1", "\\0", "(" * 5_000])
def test_what_cannot_be_read_is_not_bent(text: str) -> None:
    """There is no second look then."""
    assert bend(text, WANTED, SOURCE) is None
