"""How good a deployment is for an objective; unknown stays unknown."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import assert_never

from turnout.core.ids import DeploymentId
from turnout.core.money import Micros, cost_micros
from turnout.core.usage import Usage
from turnout.gateway.catalog import Deployment, StatedQuality
from turnout.gateway.decide.eligible import Question
from turnout.gateway.evidence import Evidence
from turnout.gateway.measure.interval import wilson

__all__ = ["Figures", "Score", "figures", "lower_bound", "score_all"]

_EXPECTED_OUTPUT = 500
"""Output tokens of a typical call; a smaller limit of the request replaces it."""

_WEIGHTS = {"quality": 0.5, "latency": 0.25, "cost": 0.25}
"""Shares of the balanced objective."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What is known of a deployment for one request; None: unknown."""

    quality: float | None
    latency_ms: float | None
    cost: Micros | None


@dataclass(frozen=True, slots=True)
class Score:
    """A figure to rank by, higher is better, and what it was made of."""

    value: float | None
    note: str


def lower_bound(quality: StatedQuality) -> float:
    """Return the Wilson bound of a stated quality; without a sample size, the value itself."""
    if not quality.sample_size:
        return quality.value
    return wilson(quality.value, quality.sample_size).low


def figures(question: Question, deployment: Deployment, evidence: Evidence) -> Figures:
    """Return what is known: live figures where there are any, else the stated ones."""
    request, limit = question.request, question.request.max_tokens
    output = _EXPECTED_OUTPUT if limit is None else min(limit, _EXPECTED_OUTPUT)
    stated = deployment.quality.get(question.task)
    ttft = _first(evidence.ttft_ms_p50, deployment.stated_ttft_ms)
    speed = _first(evidence.tokens_per_second_p50, deployment.stated_tokens_per_second)
    usage = Usage(input_tokens=request.input_tokens_estimate, output_tokens=output)
    return Figures(
        quality=None if stated is None else lower_bound(stated),
        latency_ms=None if ttft is None or not speed else ttft + 1000 * output / speed,
        cost=None if deployment.price is None else cost_micros(usage, deployment.price),
    )


def score_all(
    question: Question, known: Mapping[DeploymentId, Figures]
) -> Mapping[DeploymentId, Score]:
    """Return the score of every eligible deployment for the question's objective.

    balanced: half the quality, a quarter each of best latency / latency and least cost / cost;
    a part that is unknown adds nothing, and a deployment of which all is unknown has no score.
    """
    match question.objective:
        case "quality":
            return {id_: _quality(f) for id_, f in known.items()}
        case "latency":
            return {id_: _latency(f) for id_, f in known.items()}
        case "cost":
            return {id_: _cost(f) for id_, f in known.items()}
        case "balanced":
            best = _best(known.values())
            return {id_: _balanced(f, best) for id_, f in known.items()}
        case _:
            assert_never(question.objective)


def _first(measured: float | None, stated: float | None) -> float | None:
    return stated if measured is None else measured


def _quality(known: Figures) -> Score:
    if known.quality is None:
        return Score(None, "quality unknown")
    return Score(known.quality, f"quality at least {known.quality:.3f}")


def _latency(known: Figures) -> Score:
    if known.latency_ms is None:
        return Score(None, "latency unknown")
    return Score(-known.latency_ms, f"{known.latency_ms:.0f} ms expected")


def _cost(known: Figures) -> Score:
    if known.cost is None:
        return Score(None, "price unknown")
    return Score(float(-known.cost), f"{known.cost} µUSD expected")


def _best(known: Iterable[Figures]) -> Figures:
    listed = list(known)
    return Figures(
        quality=None,
        latency_ms=min((f.latency_ms for f in listed if f.latency_ms is not None), default=None),
        cost=min((f.cost for f in listed if f.cost is not None), default=None),
    )


def _balanced(known: Figures, best: Figures) -> Score:
    shares = {
        "quality": known.quality,
        "latency": _ratio(best.latency_ms, known.latency_ms),
        "cost": _ratio(best.cost, known.cost),
    }
    note = ", ".join(
        f"{name} {'unknown' if share is None else format(share, '.3f')}"
        for name, share in shares.items()
    )
    if all(share is None for share in shares.values()):
        return Score(None, note)
    return Score(sum(_WEIGHTS[name] * (share or 0.0) for name, share in shares.items()), note)


def _ratio(best: float | None, own: float | None) -> float | None:
    # One is added so that a free deployment does not make every priced one worth nothing.
    return None if best is None or own is None else (best + 1) / (own + 1)
