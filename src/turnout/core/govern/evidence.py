"""What was seen of deployments, in the form in which it is kept and folded."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from pydantic import TypeAdapter

from turnout.core.inference import TaskKind
from turnout.core.json import encode_values

__all__ = [
    "KEPT_CALLS",
    "Observation",
    "QualityResult",
    "Rates",
    "decode_rates",
    "encode_rates",
    "fold",
]

KEPT_CALLS = 100.0
"""Tool calls' worth of old observations that time alone does not take away."""

_KEPT = 64
"""Latest observations of a latency."""
_CALLS_HALF_LIFE = 3_600.0
"""Seconds after which tool calls weigh half, as long as more than `KEPT_CALLS` are left."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What one answer showed of its deployment; None and 0 where it showed nothing."""

    at: float
    """Seconds since 1970."""
    ttft_ms: float | None = None
    """Milliseconds to the first token."""
    tokens_per_second: float | None = None
    calls: int = 0
    """Tool calls that it made."""
    malformed: int = 0
    """Those of them that could not be used as they came."""


@dataclass(frozen=True, slots=True)
class Rates:
    """All that is kept of one deployment's answers."""

    ttft: tuple[tuple[float, float], ...] = ()
    """The latest first tokens: when, and after how many milliseconds; oldest first."""
    speed: tuple[tuple[float, float], ...] = ()
    """The same of tokens per second."""
    calls: float = 0.0
    """Tool calls, old ones weighing less."""
    malformed: float = 0.0
    """The same of those that could not be used."""
    calls_at: float = 0.0
    """When the newest of them was seen; 0: none was."""


@dataclass(frozen=True, slots=True)
class QualityResult:
    """How many tasks of a kind a model has solved in an evaluation."""

    subject: str
    """Id of a model, or of a deployment."""
    task: TaskKind
    solved: int
    tried: int
    at: datetime
    source: str
    """What was evaluated, in words for people."""


def fold(rates: Rates, seen: Iterable[Observation]) -> Rates:
    """Return `rates` with more observations, in whatever order they come."""
    ttft, speed = list(rates.ttft), list(rates.speed)
    calls, malformed, newest = rates.calls, rates.malformed, rates.calls_at
    for one in seen:
        if one.ttft_ms is not None:
            ttft.append((one.at, one.ttft_ms))
        if one.tokens_per_second is not None:
            speed.append((one.at, one.tokens_per_second))
        if one.calls:
            kept = _kept(calls, one.at - newest)
            calls = calls * kept + one.calls
            malformed = malformed * kept + one.malformed
            newest = max(newest, one.at)
    return Rates(_latest(ttft), _latest(speed), calls, malformed, newest)


@cache
def _adapter() -> TypeAdapter[Rates]:
    return TypeAdapter(Rates)


def encode_rates(rates: Rates) -> str:
    """Return `rates` as one JSON object in ASCII."""
    return encode_values(rates)


def decode_rates(text: str) -> Rates:
    """Return the rates that `encode_rates` wrote; ValueError where there are none."""
    return _adapter().validate_json(text)


def _kept(calls: float, seconds: float) -> float:
    """Return the share of the old calls' weight that is left after so many seconds.

    Time halves it, but not below what is needed to judge by: a quiet night is no reason to know
    less in the morning.
    """
    if calls <= KEPT_CALLS:
        return 1.0
    halved: float = 0.5 ** (max(0.0, seconds) / _CALLS_HALF_LIFE)
    return max(halved, KEPT_CALLS / calls)


def _latest(seen: list[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    seen.sort()
    return tuple(seen[-_KEPT:])
