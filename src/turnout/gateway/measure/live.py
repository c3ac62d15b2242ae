"""What requests show of each deployment, old sights weighing less than new ones."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from turnout.core.clock import Clock
from turnout.core.ids import DeploymentId
from turnout.gateway.catalog import ToolSupport
from turnout.gateway.evidence import Evidence, ProbeResult

__all__ = ["LiveEvidence"]

_KEPT = 64
"""Latest sights of a figure."""
_HALF_LIFE = 600.0
"""Seconds after which a sight of a latency weighs half."""
_CALLS_HALF_LIFE = 3_600.0
"""The same for tool calls, which are rarer."""
_LOST_FOR = 30.0
"""Seconds for which a deployment that could not be reached is tried last."""


@dataclass(frozen=True, slots=True)
class _Sight:
    at: float
    value: float


@dataclass(slots=True)
class _Seen:
    """All that is kept of one deployment."""

    tools: ToolSupport = "unknown"
    ttft: deque[_Sight] = field(default_factory=lambda: deque(maxlen=_KEPT))
    speed: deque[_Sight] = field(default_factory=lambda: deque(maxlen=_KEPT))
    calls: float = 0.0
    malformed: float = 0.0
    calls_at: float = 0.0


class LiveEvidence:
    """Live figures of one process, in memory."""

    def __init__(self, clock: Clock, probes: Iterable[ProbeResult] = ()) -> None:
        self._clock = clock
        self._seen: dict[DeploymentId, _Seen] = {}
        self._figures: dict[DeploymentId, Evidence] = {}
        self._lost: dict[DeploymentId, float] = {}
        """When each that did not answer last was asked, in monotonic seconds."""
        for probe in probes:
            self.learn(probe)

    def learn(self, probe: ProbeResult) -> None:
        """Take in what a probe showed."""
        seen = self._seen.setdefault(probe.deployment, _Seen())
        seen.tools = probe.tools
        self._figures[probe.deployment] = _figures(probe.deployment, seen)

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
        now = self._clock.monotonic()
        self._lost.pop(deployment, None)
        seen = self._seen.setdefault(deployment, _Seen())
        if ttft_ms is not None:
            seen.ttft.append(_Sight(now, ttft_ms))
        if tokens_per_second is not None:
            seen.speed.append(_Sight(now, tokens_per_second))
        if calls:
            kept = 0.5 ** ((now - seen.calls_at) / _CALLS_HALF_LIFE)
            seen.calls = seen.calls * kept + calls
            seen.malformed = seen.malformed * kept + malformed
            seen.calls_at = now
        self._figures[deployment] = _figures(deployment, seen)

    def lose(self, deployment: DeploymentId) -> None:
        """Note that one could not be reached; its next answer, or a while, makes up for it."""
        self._lost[deployment] = self._clock.monotonic()

    def snapshot(self) -> Mapping[DeploymentId, Evidence]:
        """Return the figures as they are now; later observations do not change it."""
        figures = dict(self._figures)
        now = self._clock.monotonic()
        for deployment, at in self._lost.items():
            if now - at < _LOST_FOR:
                figures[deployment] = replace(
                    figures.get(deployment, Evidence(deployment)), lost=True
                )
        return figures


def _figures(deployment: DeploymentId, seen: _Seen) -> Evidence:
    return Evidence(
        deployment=deployment,
        tools=seen.tools,
        tool_success=1 - seen.malformed / seen.calls if seen.calls else None,
        tool_samples=round(seen.calls),
        ttft_ms_p50=_median(seen.ttft),
        tokens_per_second_p50=_median(seen.speed),
        latency_samples=len(seen.ttft),
    )


def _median(sights: Sequence[_Sight]) -> float | None:
    """Return the value at half of the weight; how old they all are makes no difference."""
    if not sights:
        return None
    newest = sights[-1].at
    weighted = sorted((s.value, 0.5 ** ((newest - s.at) / _HALF_LIFE)) for s in sights)
    half = sum(weight for _, weight in weighted) / 2
    reached = 0.0
    for value, weight in weighted:
        reached += weight
        if reached >= half:
            return value
    return weighted[-1][0]
