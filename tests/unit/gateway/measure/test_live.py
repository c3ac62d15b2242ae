"""Live figures follow what is seen, and forget what is old."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.core.ids import DeploymentId
from turnout.gateway.evidence import Evidence, ProbeResult
from turnout.gateway.measure.live import LiveEvidence
from turnout.testing.clock import FrozenClock

ID = DeploymentId("acme/m")


def test_nothing_seen_is_nothing_known() -> None:
    """Unknown stays unknown."""
    live = LiveEvidence(FrozenClock())
    assert live.snapshot() == {}
    live.observe(ID)
    assert live.snapshot() == {ID: Evidence(ID)}


def test_a_probe_is_where_knowledge_starts() -> None:
    """What was probed is evidence before the first request."""
    probed = ProbeResult(ID, datetime(2026, 1, 1, tzinfo=UTC), "confirmed", False, True, True, "")
    live = LiveEvidence(FrozenClock(), [probed])
    live.observe(ID, calls=1)
    assert live.snapshot()[ID].tools == "confirmed"


def test_the_median_is_not_moved_by_one_slow_answer() -> None:
    """An outlier is one sight among others."""
    live = LiveEvidence(FrozenClock())
    for ttft in (100.0, 110.0, 120.0, 99_000.0, 105.0):
        live.observe(ID, ttft_ms=ttft, tokens_per_second=50.0)
    figures = live.snapshot()[ID]
    assert figures.ttft_ms_p50 == 110.0
    assert figures.tokens_per_second_p50 == 50.0
    assert figures.latency_samples == 5


def test_new_sights_soon_outweigh_old_ones() -> None:
    """A provider that became slow shows as slow within few requests."""
    clock = FrozenClock()
    live = LiveEvidence(clock)
    for _ in range(60):
        live.observe(ID, ttft_ms=100.0)
    clock.advance(3_600)
    for _ in range(3):
        live.observe(ID, ttft_ms=5_000.0)
    assert live.snapshot()[ID].ttft_ms_p50 == 5_000.0


def test_malformed_calls_lower_the_rate_and_are_forgiven_in_time() -> None:
    """Old failures weigh less than new successes."""
    clock = FrozenClock()
    live = LiveEvidence(clock)
    live.observe(ID, calls=10, malformed=5)
    assert live.snapshot()[ID].tool_success == 0.5
    clock.advance(4 * 3_600)
    live.observe(ID, calls=10)
    after = live.snapshot()[ID]
    assert after.tool_success == pytest.approx(1 - 5 / 16 / (10 + 10 / 16))
    assert after.tool_samples == 11


def test_one_that_was_not_reached_is_lost_for_a_while() -> None:
    """Half a minute, or until it answers."""
    clock = FrozenClock()
    live = LiveEvidence(clock)
    live.lose(ID)
    assert live.snapshot() == {ID: Evidence(ID, lost=True)}
    clock.advance(30)
    assert live.snapshot() == {}
    live.lose(ID)
    live.observe(ID)
    assert live.snapshot() == {ID: Evidence(ID)}


def test_a_snapshot_stands_still() -> None:
    """A decision sees one moment."""
    live = LiveEvidence(FrozenClock())
    live.observe(ID, ttft_ms=1.0)
    before = live.snapshot()
    live.observe(ID, ttft_ms=9_000.0, calls=1, malformed=1)
    assert before[ID].tool_success is None


@given(st.lists(st.tuples(st.floats(0.1, 1e6), st.floats(0, 1e4)), min_size=1, max_size=200))
def test_the_median_is_a_value_that_was_seen(sights: list[tuple[float, float]]) -> None:
    """However the weights fall, no figure is made up."""
    clock = FrozenClock()
    live = LiveEvidence(clock)
    for value, pause in sights:
        clock.advance(pause)
        live.observe(ID, ttft_ms=value)
    assert live.snapshot()[ID].ttft_ms_p50 in {value for value, _ in sights}
