"""Whether two arms differ by more than chance."""

from math import comb, isclose

from hypothesis import given
from hypothesis import strategies as st

from turnout.evals.report.stats.paired import holm, mcnemar, sign_flips

counts = st.integers(0, 25)
halves = st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), max_size=10)


def binomial_p(first: int, second: int) -> float:
    """Return McNemar's exact two-sided p-value as textbooks write it."""
    total, most = first + second, max(first, second)
    tail = sum(comb(total, each) for each in range(most, total + 1)) / 2**total
    return min(1.0, 2 * tail)


@given(counts, counts)
def test_one_try_a_task_gives_mcnemars_exact_test(first: int, second: int) -> None:
    """The p-value is twice the binomial tail, the mid-p one less by the split that was seen."""
    found = mcnemar(first, second)
    assert isclose(found.p, binomial_p(first, second))
    if first != second:
        seen = comb(first + second, first) / 2 ** (first + second)
        assert isclose(found.mid_p, found.p - seen)


def test_six_to_nothing_is_the_first_split_that_counts() -> None:
    """Five to nothing could be chance."""
    assert mcnemar(5, 0).p == 0.0625
    assert mcnemar(6, 0).p == 0.03125
    assert mcnemar(0, 0).p == mcnemar(0, 0).mid_p == 1.0


@given(halves)
def test_every_way_of_turning_the_differences_round_counts_once(differences: list[float]) -> None:
    """The test agrees with going through all of them."""
    shown = [each for each in differences if each]
    seen = abs(sum(shown))
    at_least = 0
    for choice in range(2 ** len(shown)):
        signs = [1 if choice >> place & 1 else -1 for place in range(len(shown))]
        turned = sum(sign * abs(each) for sign, each in zip(signs, shown, strict=True))
        at_least += abs(turned) >= seen
    assert isclose(sign_flips(differences).p, at_least / 2 ** len(shown))


@given(halves)
def test_it_does_not_matter_which_arm_is_first(differences: list[float]) -> None:
    """The test looks both ways."""
    assert sign_flips(differences) == sign_flips([-each for each in differences])


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_never_lowers_a_value_nor_changes_the_order(values: list[float]) -> None:
    """What is shown after many comparisons is shown before."""
    adjusted = holm(values)
    assert all(value <= new <= 1 for value, new in zip(values, adjusted, strict=True))
    pairs = sorted(zip(values, adjusted, strict=True))
    assert [new for _, new in pairs] == sorted(adjusted)


def test_holm_multiplies_the_smallest_by_all_and_the_next_by_one_less() -> None:
    """As the procedure is written."""
    assert holm([0.01, 0.04, 0.03]) == (0.03, 0.06, 0.06)
