"""Confidence bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.gateway.decide.table import lower_bound


@pytest.mark.parametrize(
    ("value", "size", "bound"),
    [(0.5, 100, 0.4038), (1.0, 10, 0.7225), (0.0, 10, 0.0), (0.62, None, 0.62)],
)
def test_the_bound_is_wilsons(value: float, size: int | None, bound: float) -> None:
    """Known values of the 95 % interval; without a size the value stands as stated."""
    assert lower_bound(value, size) == pytest.approx(bound, abs=5e-4)


@given(value=st.floats(0, 1), size=st.integers(1, 100_000))
def test_the_bound_is_a_share_below_the_value(value: float, size: int) -> None:
    """No sample makes a model better than it was seen to be."""
    assert 0 <= lower_bound(value, size) <= value + 1e-9
