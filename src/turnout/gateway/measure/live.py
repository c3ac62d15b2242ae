"""What requests and probes show of each deployment, as figures to decide by."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from turnout.core.clock import Clock
from turnout.core.govern.evidence import KEPT_CALLS, Observation, QualityResult, Rates, fold
from turnout.core.ids import DeploymentId
from turnout.core.inference import TaskKind
from turnout.gateway.catalog import ToolSupport
from turnout.gateway.evidence import (
    Evidence,
    Examination,
    MeasuredQuality,
    ProbeResult,
    Snapshot,
)
from turnout.gateway.measure.circuits import Circuits

__all__ = ["LiveEvidence", "measured"]

_HALF_LIFE = 600.0
"""Seconds after which a latency weighs half."""
_AT_MOST_EVERY = 0.25
"""Seconds between two snapshots under load."""
_AT_LEAST_EVERY = 15.0
"""Seconds after which a snapshot's ages are no longer true enough."""
_MANY = 16
"""Observations of a deployment from which on one more may wait for the next snapshot."""

_UNSAVED = 10_000
"""Observations of a deployment that wait for the store at most."""


@dataclass(slots=True)
class _Seen:
    """All that is kept of one deployment."""

    tools: ToolSupport = "unknown"
    examined: Examination | None = None
    rates: Rates = field(default_factory=Rates)
    waiting: list[Observation] = field(default_factory=list)
    """Observations that are not in `rates` yet."""
    unsaved: deque[Observation] = field(default_factory=lambda: deque(maxlen=_UNSAVED))
    """Those that the store does not have."""


class LiveEvidence:
    """The evidence of one process; `EvidenceKeeper` keeps it between processes."""

    def __init__(
        self,
        clock: Clock,
        probes: Iterable[ProbeResult] = (),
        qualities: Iterable[QualityResult] = (),
        circuits: Circuits | None = None,
    ) -> None:
        self.circuits = circuits or Circuits(clock)
        """Who is well."""
        self._clock = clock
        self._seen: dict[DeploymentId, _Seen] = {}
        self._figures: dict[DeploymentId, Evidence] = {}
        self._quality: Mapping[str, Mapping[TaskKind, MeasuredQuality]] = {}
        self._changed: set[DeploymentId] = set()
        self._fresh = False
        """Whether the snapshot may not wait."""
        self._snapshot = Snapshot()
        self._taken = float("-inf")
        for probe in probes:
            self.learn(probe)
        self.know_qualities(qualities)

    def learn(self, probe: ProbeResult) -> None:
        """Take in what a probe showed."""
        known = self._seen.get(probe.deployment)
        if known is not None and known.tools == probe.tools and known.examined == probe.examined:
            return
        seen = self._of(probe.deployment)
        seen.tools = probe.tools
        seen.examined = probe.examined or seen.examined
        self._fresh = True

    def know_qualities(self, results: Iterable[QualityResult]) -> None:
        """Take in all that evaluations show, in place of what they showed before."""
        known = measured(results)
        if known != self._quality:
            self._quality = known
            self._fresh = True

    def observe(
        self,
        deployment: DeploymentId,
        *,
        ttft_ms: float | None = None,
        tokens_per_second: float | None = None,
        calls: int = 0,
        malformed: int = 0,
    ) -> None:
        """Take in what one answer showed; None and 0 where it showed nothing.

        `calls` counts the tool calls made, `malformed` those of them that could not be used.
        """
        if ttft_ms is None and tokens_per_second is None and not calls:
            return
        now = self._clock.now().timestamp()
        seen = self._of(deployment)
        one = Observation(now, ttft_ms, tokens_per_second, calls, malformed)
        seen.waiting.append(one)
        seen.unsaved.append(one)
        if len(seen.rates.ttft) + len(seen.waiting) < _MANY:
            self._fresh = True

    def take_unsaved(self) -> Mapping[DeploymentId, Sequence[Observation]]:
        """Return what was observed since the last call, to be saved."""
        found: dict[DeploymentId, Sequence[Observation]] = {}
        for id_, seen in self._seen.items():
            if seen.unsaved:
                found[id_] = tuple(seen.unsaved)
                seen.unsaved.clear()
        return found

    def put_back(self, unsaved: Mapping[DeploymentId, Sequence[Observation]]) -> None:
        """Take back what could not be saved."""
        for id_, observations in unsaved.items():
            self._of(id_).unsaved.extendleft(reversed(observations))

    def replace_rates(self, kept: Mapping[DeploymentId, Rates]) -> None:
        """Go on from rates that the store has, other processes' observations among them.

        What was observed here meanwhile is added.
        """
        for id_, rates in kept.items():
            seen = self._of(id_)
            seen.rates, seen.waiting = rates, list(seen.unsaved)

    def snapshot(self) -> Snapshot:
        """Return the figures as they are now, or under load were a moment ago.

        Later observations do not change it.
        """
        now = self._clock.monotonic()
        since = now - self._taken
        changed = self._fresh or (self._changed and since >= _AT_MOST_EVERY)
        if not changed and since < _AT_LEAST_EVERY:
            return self._snapshot
        for id_ in self._changed:
            seen = self._seen[id_]
            seen.rates, seen.waiting = fold(seen.rates, seen.waiting), []
            self._figures[id_] = _figures(id_, seen)
        self._changed.clear()
        self._fresh, self._taken = False, now
        self._snapshot = Snapshot(self._clock.now(), dict(self._figures), self._quality)
        return self._snapshot

    def _of(self, deployment: DeploymentId) -> _Seen:
        """Return what is kept of a deployment that is about to change."""
        self._changed.add(deployment)
        return self._seen.setdefault(deployment, _Seen())


def measured(
    results: Iterable[QualityResult],
) -> Mapping[str, Mapping[TaskKind, MeasuredQuality]]:
    """Return results by subject and task kind, as a snapshot has them; nothing tried is nothing."""
    known: dict[str, dict[TaskKind, MeasuredQuality]] = {}
    for each in results:
        if each.tried > 0:
            quality = MeasuredQuality(each.solved / each.tried, each.tried, each.at, each.source)
            known.setdefault(each.subject, {})[each.task] = quality
    return known


def _figures(deployment: DeploymentId, seen: _Seen) -> Evidence:
    rate, samples, at = _tool_success(seen.rates, seen.examined)
    wait = _latency(seen.rates, seen.examined)
    return Evidence(
        deployment=deployment,
        tools=seen.tools,
        tool_success=rate,
        tool_samples=samples,
        tool_at=at,
        ttft_ms_p50=wait.ttft_ms_p50,
        ttft_ms_p95=wait.ttft_ms_p95,
        tokens_per_second_p50=wait.tokens_per_second_p50,
        latency_samples=wait.samples,
        latency_at=wait.at,
    )


class _Latency(NamedTuple):
    ttft_ms_p50: float | None
    ttft_ms_p95: float | None
    tokens_per_second_p50: float | None
    samples: int
    at: datetime | None


def _latency(rates: Rates, examined: Examination | None) -> _Latency:
    """Return the latency of traffic, and of the examination where traffic has shown none."""
    speed = _percentile(rates.speed, 0.5)
    if speed is None and examined is not None:
        speed = examined.tokens_per_second_p50
    if rates.ttft:
        median, slow = _percentile(rates.ttft, 0.5), _percentile(rates.ttft, 0.95)
        return _Latency(median, slow, speed, len(rates.ttft), _moment(rates.ttft[-1][0]))
    if examined is not None and examined.ttft_ms_p50 is not None:
        median, slow = examined.ttft_ms_p50, examined.ttft_ms_p95
        return _Latency(median, slow, speed, examined.timed, examined.at)
    return _Latency(None, None, speed, 0, None)


def _tool_success(
    rates: Rates, examined: Examination | None
) -> tuple[float | None, int, datetime | None]:
    """Return share, number and newest moment of tool calls from traffic and examination.

    The newer of the two counts in full, the older as far as more calls are needed to judge by.
    """
    live = (rates.calls, rates.malformed, rates.calls_at)
    if examined is None or not examined.tried:
        sources = [live]
    else:
        failed = examined.tried - examined.passed
        probe = (float(examined.tried), float(failed), examined.at.timestamp())
        sources = sorted((live, probe), key=lambda source: -source[2])
    total = wrong = 0.0
    for calls, failed_calls, _ in sources:
        if calls:
            share = min(1.0, max(0.0, KEPT_CALLS - total) / calls) if total else 1.0
            total += share * calls
            wrong += share * failed_calls
    if not total:
        return None, 0, None
    return 1 - wrong / total, round(total), _moment(sources[0][2])


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _percentile(seen: Sequence[tuple[float, float]], share: float) -> float | None:
    """Return the value at a share of the weight; how old they all are makes no difference."""
    if not seen:
        return None
    newest = seen[-1][0]
    weighted = sorted([(value, 0.5 ** ((newest - at) / _HALF_LIFE)) for at, value in seen])
    wanted = share * sum([weight for _, weight in weighted])
    reached = 0.0
    for value, weight in weighted:
        reached += weight
        if reached >= wanted:
            return value
    return weighted[-1][0]
