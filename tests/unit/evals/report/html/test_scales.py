"""Places of values on a plot."""

from hypothesis import given
from hypothesis import strategies as st

from turnout.evals.report.html.plots.scales import linear, suited

values = st.lists(st.integers(0, 10**10).map(float), min_size=1, max_size=8)
positive = st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=8)


@given(st.one_of(values, positive))
def test_every_value_has_a_place_on_the_plot_in_its_order(found: list[float]) -> None:
    """Greater values are never further to the left, and none is outside."""
    scale = suited(found, 10.0, 100.0)
    places = [scale.at(value) for value in sorted(found)]
    assert all(10.0 <= place <= 100.0 for place in places)
    assert places == sorted(places)


@given(st.one_of(values, positive))
def test_a_scale_has_few_ticks_and_no_value_beyond_its_ends(found: list[float]) -> None:
    """Two at least, so that a distance can be read, and not more than fit."""
    scale = suited(found, 0.0, 400.0)
    assert scale.low <= min(found) * (1 + 1e-6)
    assert scale.high >= max(found) * (1 - 1e-6)
    assert 2 <= len(scale.ticks) <= 6
    assert list(scale.ticks) == sorted(set(scale.ticks))
    assert all(scale.low <= tick <= scale.high for tick in scale.ticks)


def test_values_far_apart_are_told_apart_on_a_logarithm() -> None:
    """Two cents and two dollars are."""
    assert suited([20_000, 2_000_000], 0, 1).kind == "log"
    assert suited([20_000, 60_000], 0, 1).kind == "linear"
    assert suited([0, 2_000_000], 0, 1).kind == "linear"


def test_a_linear_scale_ends_at_a_round_value() -> None:
    """Ticks are what people count in."""
    assert linear(37, 0, 1).ticks == (0, 10, 20, 30, 40)
    assert linear(0, 0, 1).high > 0
