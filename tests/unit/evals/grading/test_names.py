"""Names of tests, as an environment calls them."""

import pytest

from turnout.evals.grading.names import as_called_here, count, some

HERE = ("t::f[1-text0]", "t::f[2-text1]", "t::g[a]", "t::h")


@pytest.mark.parametrize(
    ("tests", "ended", "found"),
    [
        (("t::f[1-long]", "t::f[2-longer]"), HERE, HERE[:2]),
        (("t::f[1-text0]", "t::f[2-longer]"), HERE, HERE[:2]),
        (("t::f[1-long]",), HERE, ("t::f[1-long]",)),
        (("t::x[1]", "t::h"), HERE, ("t::x[1]", "t::h")),
        (("t::g[a]", "t::f"), HERE, ("t::g[a]", "t::f")),
    ],
)
def test_names_of_parameters_are_those_that_were_heard(
    tests: tuple[str, ...], ended: tuple[str, ...], found: tuple[str, ...]
) -> None:
    """Only where as many others of the same test ended so; else a name stays as it is."""
    assert as_called_here(tests, ended, ended) == found


def test_a_test_that_ended_otherwise_is_not_taken() -> None:
    """What must fail is not one of those that pass."""
    assert as_called_here(("t::f[long]",), ("t::f[text0]",), ()) == ("t::f[long]",)


def test_names_are_cut_in_sentences() -> None:
    """Whoever wrote the tests does not get to fill a screen."""
    assert some(["a" * 300, "b"]) == f"{'a' * 200}…, b"
    assert some(list("abcde")) == "a, b, c and 2 more"
    assert (count(["a"]), count([])) == ("1 test", "0 tests")
