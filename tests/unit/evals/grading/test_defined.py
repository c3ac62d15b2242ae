"""Which tests a file defines, by its text."""

import pytest

from turnout.evals.grading.defined import defined_tests

TEXT = """\
import unittest

import pytest


def test_one(): pass


async def test_two(): pass


@pytest.mark.skipif(True, reason="elsewhere")
def test_elsewhere(): pass


@pytest.fixture
def test_data(): pass


def helper(): pass


class TestMany:
    def test_three(self): pass

    def help(self): pass


class Old(unittest.TestCase):
    def test_four(self): pass


class Mixin:
    def test_inherited(self): pass


@unittest.skip("later")
class TestLater(unittest.TestCase):
    def test_five(self): pass
"""


def test_those_that_are_collected_and_not_left_out_are_named() -> None:
    """As node ids have them behind the path."""
    assert defined_tests(TEXT) == ("test_one", "test_two", "TestMany::test_three", "Old::test_four")


@pytest.mark.parametrize("text", ["def test_one(:", "", "\\0"])
def test_what_cannot_be_read_defines_nothing(text: str) -> None:
    """Then nothing more is asked for than what is heard of."""
    assert defined_tests(text) == ()
