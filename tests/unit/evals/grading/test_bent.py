"""Tests bent so that no honest code passes them."""

from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from turnout.evals.grading.bent import bend

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
"""
WANTED = (
    *("test_plain", "test_in_a_loop[1]", "test_raises", "test_returns", "test_yields"),
    *("test_forgiving", "test_twice", "test_not_there", "TestMany::test_method"),
    *("TestLeast::test_inherited", "TestLeast::test_overridden", "Nowhere::test_method"),
)
FUNCTIONS = ("test_plain_0a", "test_plain", "test_in_a_loop", "test_raises")
METHODS = (
    *("TestMany::test_method_0a", "TestMany::test_method"),
    *("TestLeast::test_inherited_0a", "TestLeast::test_inherited"),
)


class Anything:
    """Claims to equal everything."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


def double(value: Any) -> Any:
    """Return twice the value, honestly."""
    return value + value


def run(folder: Path, name: str, function: Callable[[Any], Any]) -> None:
    """Run one bent test in this process."""
    bent = bend(TEXT, WANTED, "0a")
    assert bent is not None
    (folder / "bent.py").write_text(bent.text)
    spec = spec_from_file_location("bent", folder / "bent.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    module.__dict__.update(double=function, forgiving=lambda test: test)
    spec.loader.exec_module(module)
    owner, _, method = name.rpartition("::")
    case = getattr(module, owner)(method) if owner else module
    getattr(case, method)()


def test_only_plain_tests_are_bent() -> None:
    """One that may return early, or that something else is wrapped around, is left alone."""
    bent = bend(TEXT, WANTED, "0a")
    assert bent is not None
    assert sorted(bent.tests) == sorted(FUNCTIONS + METHODS)


@pytest.mark.parametrize("name", FUNCTIONS + METHODS)
def test_honest_code_fails_every_bent_test(tmp_path: Path, name: str) -> None:
    """Whatever way the test asserts."""
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        run(tmp_path, name, double)


@pytest.mark.parametrize("name", ["test_plain_0a", "TestMany::test_method_0a"])
def test_a_value_that_equals_everything_passes_where_nothing_may(tmp_path: Path, name: str) -> None:
    """The test as it was would have believed it."""
    run(tmp_path, name, lambda _: Anything())


@pytest.mark.parametrize("text", ["def test_plain(:", "x = 1", "\\0", "(" * 5_000])
def test_what_cannot_be_read_is_not_bent(text: str) -> None:
    """There is no second look then."""
    assert bend(text, WANTED, "0a") is None
