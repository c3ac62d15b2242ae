"""Bounds of paired differences and ratios."""

from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.evals.report.stats.bootstrap import (
    Pair,
    by_clusters,
    difference,
    difference_bounds,
    ratio,
    ratio_bounds,
)

shares = st.sampled_from([0.0, 0.5, 1.0])
some = st.lists(st.builds(Pair, shares, shares), min_size=1, max_size=20)


@settings(max_examples=12)
@given(some)
def test_bounds_of_a_difference_hold_it_and_stay_possible(pairs: list[Pair]) -> None:
    """They lie within -1 and 1, and equal pairs give equal bounds."""
    bounds = difference_bounds(pairs)
    assert -1 <= bounds.low <= difference(pairs) + 1e-9
    assert difference(pairs) - 1e-9 <= bounds.high <= 1
    assert difference_bounds(pairs) == bounds


def test_tasks_that_all_agree_do_not_make_certainty() -> None:
    """Three equal results leave nearly everything possible, three hundred little."""
    few = difference_bounds([Pair(1.0, 1.0)] * 3)
    many = difference_bounds([Pair(1.0, 1.0)] * 300)
    assert few.low < -0.5 < 0.5 < few.high
    assert -0.02 < many.low < 0 < many.high < 0.02
    assert difference_bounds([Pair(1.0, 0.0)] * 3).high == 1.0


def test_bounds_come_close_to_those_of_the_normal_curve() -> None:
    """With many tasks both say the same."""
    pairs = [Pair(1.0, 0.0)] * 60 + [Pair(0.0, 1.0)] * 30 + [Pair(1.0, 1.0)] * 110
    bounds = difference_bounds(pairs)
    spread = 1.96 * ((90 - 30**2 / 200) / 200 / 200) ** 0.5
    assert abs(bounds.low - (0.15 - spread)) < 0.012
    assert abs(bounds.high - (0.15 + spread)) < 0.012


def test_whole_repositories_are_drawn_where_there_are_eight() -> None:
    """Tasks of one repository that go the same way count as less than so many tasks."""
    alone = [Pair(float(n % 4 == 0), 0.0, f"r{n % 7}") for n in range(80)]
    clustered = [Pair(float(n % 8 < 2), 0.0, f"r{n % 8}") for n in range(80)]
    assert not by_clusters(alone)
    assert by_clusters(clustered)
    width = difference_bounds(clustered).high - difference_bounds(clustered).low
    assert width > difference_bounds(alone).high - difference_bounds(alone).low


def test_a_ratio_is_one_of_totals() -> None:
    """A task that costs much counts for much; where there is nothing to divide by, none is told."""
    pairs = [Pair(1.0, 1.0), Pair(1.0, 1.0), Pair(1.0, 1.0), Pair(1.0, 1.0), Pair(12.0, 4.0)]
    assert ratio(pairs) == 2.0
    bounds = ratio_bounds(pairs)
    assert bounds is not None
    assert bounds.low == 1.0 < 2.0 < bounds.high
    assert ratio_bounds(pairs[:4]) is None
    assert ratio([Pair(1.0, 0.0)]) is None
    assert ratio_bounds([Pair(1.0, 0.0)] * 9) is None
