"""How large a difference a set can show."""

import pytest

from turnout.evals.report.stats.paired import mcnemar
from turnout.evals.report.stats.power import Power, power, smallest_difference


@pytest.mark.parametrize(("tasks", "points"), [(40, 0.2), (100, 0.13), (200, 0.095)])
def test_more_tasks_show_smaller_differences(tasks: int, points: float) -> None:
    """Where a fifth of the tasks come out differently."""
    found = smallest_difference(Power(tasks))
    assert found is not None
    assert abs(found - points) < 0.006


def test_ten_tasks_show_only_what_is_plain_to_see() -> None:
    """Nothing near a fifth, and five tasks nothing at all."""
    found = smallest_difference(Power(10))
    assert found is not None
    assert found > 0.6
    assert smallest_difference(Power(5)) is None
    assert smallest_difference(Power(0)) is None


def test_six_tasks_show_what_differs_in_every_one() -> None:
    """As the exact test says of six to nothing."""
    assert power(Power(6), 1.0) == 1.0
    assert mcnemar(6, 0).p < 0.05 < mcnemar(5, 0).p
    assert power(Power(5), 1.0) == 0.0


def test_no_true_difference_is_shown_no_more_often_than_the_level_allows() -> None:
    """The exact test is cautious."""
    assert 0 < power(Power(60), 0.0) < 0.05


def test_more_comparisons_at_once_show_less() -> None:
    """A stricter level needs a larger difference."""
    one, five = smallest_difference(Power(40)), smallest_difference(Power(40, level=0.01))
    assert one is not None
    assert five is not None
    assert five > one
