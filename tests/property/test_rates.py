"""Folding observations keeps figures bounded and true, in whatever order they come."""

from hypothesis import given
from hypothesis import strategies as st

from turnout.core.govern.evidence import (
    KEPT_CALLS,
    Observation,
    Rates,
    decode_rates,
    encode_rates,
    fold,
)

FIGURE = st.none() | st.floats(0, 1e9)
OBSERVATIONS = st.lists(
    st.builds(
        lambda at, ttft, speed, calls, bad: Observation(at, ttft, speed, calls, min(calls, bad)),
        st.floats(0, 4e9),
        FIGURE,
        FIGURE,
        st.integers(0, 50),
        st.integers(0, 50),
    ),
    max_size=150,
)


@given(OBSERVATIONS)
def test_rates_stay_bounded_and_sane(seen: list[Observation]) -> None:
    """No more failures than calls, no more calls than seen, the latest latencies in order."""
    rates = fold(Rates(), seen)
    calls = sum(one.calls for one in seen)
    assert 0 <= rates.malformed <= rates.calls + 1e-6
    assert min(calls, KEPT_CALLS) - 1e-6 <= rates.calls <= calls
    for kept in (rates.ttft, rates.speed):
        assert len(kept) <= 64
        assert list(kept) == sorted(kept, key=lambda pair: pair[0])


@given(OBSERVATIONS, st.integers(0, 150))
def test_folding_in_parts_is_folding_at_once(seen: list[Observation], cut: int) -> None:
    """What is saved in between makes no difference."""
    assert fold(fold(Rates(), seen[:cut]), seen[cut:]) == fold(Rates(), seen)


@given(OBSERVATIONS)
def test_rates_are_kept_exactly(seen: list[Observation]) -> None:
    """JSON and back."""
    rates = fold(Rates(), seen)
    assert decode_rates(encode_rates(rates)) == rates
