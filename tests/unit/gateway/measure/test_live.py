"""Live figures follow what is seen, and forget what is old."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.core.govern.evidence import QualityResult, Rates
from turnout.core.ids import DeploymentId
from turnout.gateway.evidence import Check, Evidence, Examination, MeasuredQuality, ProbeResult
from turnout.gateway.measure.live import LiveEvidence
from turnout.testing.clock import FrozenClock

ID = DeploymentId("acme/m")
START = datetime(2026, 1, 1, tzinfo=UTC)


def examined(passed: int, tried: int, at: datetime = START) -> ProbeResult:
    """Return a probe whose examination went so."""
    exam = Examination(at, (Check("call", passed, tried),), 250.0, 400.0, 80.0, 3)
    return ProbeResult(ID, at, "confirmed", False, True, True, "", exam)


def figures(live: LiveEvidence) -> Evidence:
    """Return what is known of the one deployment now."""
    return live.snapshot().of[ID]


def test_nothing_seen_is_nothing_known() -> None:
    """Unknown stays unknown, and an answer that shows nothing changes nothing."""
    live = LiveEvidence(FrozenClock())
    live.observe(ID)
    assert live.snapshot().of == {}


def test_a_probe_is_where_knowledge_starts() -> None:
    """What was probed is evidence before the first request."""
    probed = ProbeResult(ID, START, "confirmed", False, True, True, "")
    live = LiveEvidence(FrozenClock(), [probed])
    live.observe(ID, calls=1)
    assert figures(live).tools == "confirmed"


def test_an_examination_gives_rate_size_age_and_latency() -> None:
    """All that decisions show of evidence, before any traffic."""
    known = figures(LiveEvidence(FrozenClock(), [examined(19, 20)]))
    assert (known.tool_success, known.tool_samples, known.tool_at) == (0.95, 20, START)
    assert (known.ttft_ms_p50, known.ttft_ms_p95, known.tokens_per_second_p50) == (250, 400, 80)
    assert (known.latency_samples, known.latency_at) == (3, START)


def test_traffic_adds_to_an_examination_and_in_time_takes_its_place() -> None:
    """Early calls count beside the probe's; after a hundred it has nothing left to say."""
    clock = FrozenClock()
    live = LiveEvidence(clock, [examined(0, 20)])
    live.observe(ID, calls=20)
    assert (figures(live).tool_success, figures(live).tool_samples) == (0.5, 40)
    clock.advance(60)
    live.observe(ID, calls=80)
    assert figures(live).tool_success == 1.0
    assert figures(live).tool_at == START + timedelta(seconds=60)


def test_measured_latency_wins_over_the_examinations() -> None:
    """One figure of traffic is worth more than a probe of last week."""
    live = LiveEvidence(FrozenClock(), [examined(20, 20)])
    live.observe(ID, ttft_ms=900.0)
    assert (figures(live).ttft_ms_p50, figures(live).latency_samples) == (900.0, 1)
    assert figures(live).tokens_per_second_p50 == 80.0


def test_the_median_is_not_moved_by_one_slow_answer() -> None:
    """An outlier is one sight among others; the 95th percentile shows it."""
    live = LiveEvidence(FrozenClock())
    for ttft in (100.0, 110.0, 120.0, 99_000.0, 105.0):
        live.observe(ID, ttft_ms=ttft, tokens_per_second=50.0)
    known = figures(live)
    assert (known.ttft_ms_p50, known.ttft_ms_p95) == (110.0, 99_000.0)
    assert known.tokens_per_second_p50 == 50.0
    assert known.latency_samples == 5


def test_new_sights_soon_outweigh_old_ones() -> None:
    """A provider that became slow shows as slow within few requests."""
    clock = FrozenClock()
    live = LiveEvidence(clock)
    for _ in range(60):
        live.observe(ID, ttft_ms=100.0)
    clock.advance(3_600)
    for _ in range(3):
        live.observe(ID, ttft_ms=5_000.0)
    assert figures(live).ttft_ms_p50 == 5_000.0


def test_malformed_calls_lower_the_rate_and_are_forgiven_in_time() -> None:
    """Beyond what is needed to judge by, old failures weigh less than new successes."""
    clock = FrozenClock()
    live = LiveEvidence(clock)
    live.observe(ID, calls=1_600, malformed=800)
    assert figures(live).tool_success == 0.5
    clock.advance(3_600)
    live.observe(ID, calls=800)
    assert figures(live).tool_success == pytest.approx(1 - 400 / 1_600)
    clock.advance(100 * 3_600)
    live.observe(ID, calls=100)
    assert figures(live).tool_success == pytest.approx(1 - 25 / 200)
    assert figures(live).tool_samples == 200


def test_a_quiet_night_takes_no_evidence_away() -> None:
    """The first call of the morning finds as many samples as the evening left."""
    clock = FrozenClock()
    live = LiveEvidence(clock)
    live.observe(ID, calls=30, malformed=1)
    clock.advance(12 * 3_600)
    live.observe(ID, calls=1)
    assert figures(live).tool_samples == 31


def test_a_snapshot_stands_still() -> None:
    """A decision sees one moment; nothing new is the same object."""
    live = LiveEvidence(FrozenClock())
    live.observe(ID, ttft_ms=1.0)
    before = live.snapshot()
    assert live.snapshot() is before
    live.observe(ID, ttft_ms=9_000.0, calls=1, malformed=1)
    assert live.snapshot() is not before
    assert before.of[ID].tool_success is None


def test_under_load_a_snapshot_is_made_four_times_a_second() -> None:
    """Every answer would move it; ages move it where nothing else does."""
    clock = FrozenClock()
    live = LiveEvidence(clock)
    for _ in range(20):
        live.observe(ID, ttft_ms=1.0)
    first = live.snapshot()
    live.observe(ID, ttft_ms=2.0)
    assert live.snapshot() is first
    clock.advance(0.25)
    second = live.snapshot()
    assert second.of[ID].latency_samples == 21
    clock.advance(20)
    assert live.snapshot().at > second.at


def test_what_evaluations_say_is_known_whole() -> None:
    """What one said that was taken back is forgotten; nothing tried says nothing."""
    live = LiveEvidence(FrozenClock(), qualities=[QualityResult("o", "coding", 1, 2, START, "old")])
    newer = START + timedelta(days=1)
    results = [
        QualityResult("m", "coding", 6, 10, newer, "new"),
        QualityResult("n", "coding", 0, 0, START, "none"),
    ]
    live.know_qualities(results)
    first = live.snapshot()
    assert first.quality == {"m": {"coding": MeasuredQuality(0.6, 10, newer, "new")}}
    live.know_qualities(list(results))
    assert live.snapshot() is first


def test_what_others_saw_is_taken_over_and_own_sights_are_kept() -> None:
    """Unsaved observations stand on top of what the store had."""
    live = LiveEvidence(FrozenClock())
    live.observe(ID, calls=2)
    saved = live.take_unsaved()
    assert [one.calls for one in saved[ID]] == [2]
    live.observe(ID, calls=1, malformed=1)
    live.replace_rates({ID: Rates(calls=9.0, malformed=0.0, calls_at=START.timestamp())})
    assert (figures(live).tool_samples, figures(live).tool_success) == (10, 0.9)
    assert [one.calls for one in live.take_unsaved()[ID]] == [1]


@given(st.lists(st.tuples(st.floats(0.1, 1e6), st.floats(0, 1e4)), min_size=1, max_size=200))
def test_the_median_is_a_value_that_was_seen(sights: list[tuple[float, float]]) -> None:
    """However the weights fall, no figure is made up."""
    clock = FrozenClock()
    live = LiveEvidence(clock)
    for value, pause in sights:
        clock.advance(pause)
        live.observe(ID, ttft_ms=value)
    clock.advance(1)
    assert figures(live).ttft_ms_p50 in {value for value, _ in sights}
    assert (figures(live).ttft_ms_p95 or 0) >= (figures(live).ttft_ms_p50 or 0)
