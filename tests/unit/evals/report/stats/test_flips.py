"""The interval that belongs to the exact test."""

from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.evals.report.stats.flips import flip_bounds
from turnout.evals.report.stats.paired import sign_flips

LEVELS = (0.05, 0.0125)
gaps = st.lists(st.sampled_from([-1.0, -1 / 3, 0.0, 0.5, 1.0]), min_size=1, max_size=14)


@settings(max_examples=60)
@given(gaps)
def test_it_holds_no_difference_just_where_the_test_shows_none(differences: list[float]) -> None:
    """At any level, also where tasks were tried several times."""
    p = sign_flips(differences).p
    for level in LEVELS:
        bounds = flip_bounds(differences, level)
        if bounds is None:
            assert not any(differences)
            continue
        assert (bounds.low <= 0 <= bounds.high) == (p > level)
        assert bounds.low - 1e-9 <= sum(differences) / len(differences) <= bounds.high + 1e-9


def test_it_is_that_of_clopper_and_pearson_for_tasks_that_came_out_differently() -> None:
    """Of 10 such tasks, 8 in favour: 0.4439 to 0.9748 of them."""
    bounds = flip_bounds([1.0] * 8 + [-1.0] * 2 + [0.0] * 10, 0.05)
    assert bounds is not None
    assert round(bounds.low, 4) == round((2 * 0.4439 - 1) / 2, 4)
    assert round(bounds.high, 4) == round((2 * 0.9748 - 1) / 2, 4)


def test_more_than_can_be_added_up_is_left_to_drawing_again() -> None:
    """Hundreds of tasks of unequal shares; of equal ones any number is counted."""
    assert flip_bounds([1.0, -1 / 3] * 400, 0.05) is None
    assert flip_bounds([1.0, -1.0] * 400, 0.05) is not None
