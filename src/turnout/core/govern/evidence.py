"""What was seen of deployments and measured of models, as it is kept and folded."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Literal

from pydantic import TypeAdapter

from turnout.core.inference import TaskKind
from turnout.core.json import encode_values

__all__ = [
    "KEPT_CALLS",
    "Evaluation",
    "Observation",
    "QualityResult",
    "Rates",
    "Score",
    "TestsSeen",
    "decode_rates",
    "encode_rates",
    "fold",
    "in_force",
]

KEPT_CALLS = 100.0
"""Tool calls' worth of old observations that time alone does not take away."""

_KEPT = 64
"""Latest observations of a latency."""
_CALLS_HALF_LIFE = 3_600.0
"""Seconds after which tool calls weigh half, as long as more than `KEPT_CALLS` are left."""


TestsSeen = Literal["hidden", "visible"]
"""Whether the models saw the tests that graded them."""


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


@dataclass(frozen=True, slots=True)
class Score:
    """How many of an evaluation's tasks one model has solved."""

    subject: str
    """Id of a model, or of a deployment."""
    solved: int
    tried: int


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What was measured of some models, all of them on the same tasks in the same way."""

    id: str
    """Digest of what was measured: measured again it is another."""
    task: TaskKind
    """Of the requests that are routed by it."""
    mode: TestsSeen
    at: datetime
    """When the last of it was measured."""
    source: str
    """What was evaluated, in words for people."""
    scores: tuple[Score, ...]
    author: str = ""
    """Who applied it."""
    applied_at: datetime | None = None
    """None: it was not applied."""
    tasks: str = ""
    """Digest of the set of tasks that it is of; empty: unknown, and the same as no other."""
    beside: bool = False
    """Whether it is ranked beside what was measured on other tasks, because somebody said so."""

    def same_as(self, other: "Evaluation") -> bool:
        """Whether it says the same and is ranked beside the same."""
        return (self.id, self.tasks, self.beside) == (other.id, other.tasks, other.beside)

    def results(self) -> tuple[QualityResult, ...]:
        """Return what it says of each model, in the form in which decisions cite it."""
        source = f"evaluation {self.id}, {self.mode} tests: {self.source}"
        return tuple(
            QualityResult(score.subject, self.task, score.solved, score.tried, self.at, source)
            for score in self.scores
        )


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


def in_force(applied: Sequence[Evaluation]) -> tuple[QualityResult, ...]:
    """Return what counts of evaluations that were applied in this order.

    Of each model and task kind the last one counts. Figures of models that saw the tests and of
    models that did not are never ranked against each other: of a task kind, those alone count
    that were measured as the last one was. Nor are figures of different sets of tasks, unless an
    evaluation was applied to be ranked beside what counted before it.
    """
    kinds = dict.fromkeys(each.task for each in applied)
    found = {
        (result.subject, result.task): result
        for kind in kinds
        for each in _counting([one for one in applied if one.task == kind])
        for result in each.results()
    }
    return tuple(found[key] for key in sorted(found))


def _counting(applied: Sequence[Evaluation]) -> Sequence[Evaluation]:
    """Return those of one task kind that may be ranked together, in their order."""
    alike = [each for each in applied if each.mode == applied[-1].mode]
    kept: list[Evaluation] = []
    for place, each in enumerate(alike):
        if not each.beside:
            kept = [one for one in alike[:place] if one.tasks and one.tasks == each.tasks]
        kept.append(each)
    return kept


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
