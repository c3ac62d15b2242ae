"""How far a rate that was seen may be from the true one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.gateway.measure.interval import wilson


@pytest.mark.parametrize(
    ("successes", "total", "low", "high"),
    [(8, 10, 0.4902, 0.9433), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (0, 0, 0.0, 1.0)],
)
def test_the_interval_is_that_of_wilson(
    successes: int, total: int, low: float, high: float
) -> None:
    """Known values."""
    interval = wilson(successes / total if total else 0.0, total)
    assert interval.low == pytest.approx(low, abs=1e-4)
    assert interval.high == pytest.approx(high, abs=1e-4)


@given(st.integers(0, 500), st.integers(1, 500))
def test_the_interval_holds_the_rate(successes: int, more: int) -> None:
    """And stays between 0 and 1."""
    rate = successes / (successes + more)
    interval = wilson(rate, successes + more)
    assert 0 <= interval.low <= rate <= interval.high <= 1
