"""How good a deployment is for an objective; unknown stays unknown."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from turnout.core.inference import Objective
from turnout.core.money import Micros, cost_micros
from turnout.gateway.decide.eligible import Question
from turnout.gateway.decide.table import Row

__all__ = ["Figures", "Score", "figures", "score_all"]

_QUALITY, _LATENCY, _COST = 0.5, 0.25, 0.25
"""Shares of the balanced objective."""


class Figures(NamedTuple):
    """What is known of a deployment for one request; None: unknown."""

    quality: float | None
    latency_ms: float | None
    """Until the whole answer is there: first token and speed together."""
    cost: Micros | None
    unknown_latency: str = "unknown"
    """What is said where it is None: which of the two is missing."""


class Score(NamedTuple):
    """A figure to rank by, higher is better, and what it was made of."""

    value: float | None
    note: str


def figures(q: Question, row: Row) -> Figures:
    """Return what is known: measured figures where there are any, else the stated ones."""
    known = row.quality.get(q.task)
    ttft, speed = row.ttft_ms, row.tokens_per_second
    if ttft is None:
        gap = "unknown: no first token measured" if speed else "unknown"
    else:
        gap = "unknown: no speed measured, answers too short"
    return Figures(
        None if known is None else known.least,
        None if ttft is None or not speed else ttft + 1000 * q.expected.output_tokens / speed,
        None if row.price is None else cost_micros(q.expected, row.price),
        gap,
    )


def score_all(objective: Objective, known: Sequence[Figures]) -> list[Score]:
    """Return the scores of all eligible deployments for an objective, in their order.

    balanced: half the quality, a quarter each of best latency / latency and least cost / cost;
    a part that is unknown adds nothing, and a deployment of which all is unknown has no score.
    """
    if objective == "quality":
        return [_quality(f) for f in known]
    if objective == "latency":
        return [_latency(f) for f in known]
    if objective == "cost":
        return [_cost(f) for f in known]
    fastest, least = _least(f.latency_ms for f in known), _least(f.cost for f in known)
    return [_balanced(f, fastest, least) for f in known]


def _quality(known: Figures) -> Score:
    if known.quality is None:
        return Score(None, "quality unknown")
    return Score(known.quality, f"quality at least {known.quality:.3f}")


def _latency(known: Figures) -> Score:
    if known.latency_ms is None:
        return Score(None, f"latency {known.unknown_latency}")
    return Score(-known.latency_ms, f"{known.latency_ms:.0f} ms expected")


def _cost(known: Figures) -> Score:
    if known.cost is None:
        return Score(None, "price unknown")
    return Score(float(-known.cost), f"{known.cost} µUSD expected")


def _least(values: Iterable[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)


def _balanced(known: Figures, fastest: float | None, least: float | None) -> Score:
    quality = known.quality
    latency = _ratio(fastest, known.latency_ms)
    cost = _ratio(least, known.cost)
    wait = known.unknown_latency if latency is None else _share(latency)
    note = f"quality {_share(quality)}, latency {wait}, cost {_share(cost)}"
    if quality is None and latency is None and cost is None:
        return Score(None, note)
    value = _QUALITY * (quality or 0.0) + _LATENCY * (latency or 0.0) + _COST * (cost or 0.0)
    return Score(value, note)


def _share(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"


def _ratio(best: float | None, own: float | None) -> float | None:
    # One is added so that a free deployment does not make every priced one worth nothing.
    return None if best is None or own is None else (best + 1) / (own + 1)
