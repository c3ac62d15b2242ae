"""Which functions of a test file are meant by the ids of tests."""

from turnout.agent.repair.grafting.source import Module, parse_module
from turnout.agent.repair.reading import named_tests

TESTS = """\
def test_negative():
    pass

class Shared:
    def test_inherited(self):
        pass

class TestA(Shared):
    def test_negative(self):
        pass

class TestB(Shared):
    def test_negative(self):
        pass
"""


def parsed() -> Module:
    """Return a file in which three tests have one name."""
    module = parse_module("tests/test_a.py", TESTS.encode())
    assert module is not None
    return module


def named(*failed: str) -> list[str]:
    """Return the dotted names that are meant."""
    return [each.name for each in named_tests(parsed(), failed)]


def test_a_namesake_in_another_class_is_not_meant() -> None:
    """It passes, and showing it would mislead a small model."""
    assert named("tests/test_a.py::TestB::test_negative") == ["TestB.test_negative"]
    assert named("tests/test_a.py::test_negative[1]") == ["test_negative"]


def test_an_inherited_test_is_found_by_its_name() -> None:
    """The class that inherits it has no function of that name."""
    assert named("tests/test_a.py::TestA::test_inherited") == ["Shared.test_inherited"]


def test_tests_of_other_files_are_not_meant_but_the_folder_they_run_in_may_be_another() -> None:
    """An id is relative to where pytest was started."""
    assert named("tests/test_b.py::test_negative", "tests/test_a.py") == []
    assert named("test_a.py::test_negative") == ["test_negative"]
