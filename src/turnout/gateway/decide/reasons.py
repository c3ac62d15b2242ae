"""A decision in words, and the error where it found nobody."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil

from turnout.core.ids import DeploymentId
from turnout.core.inference import Objective, TaskKind
from turnout.core.receipts import Candidate, Decision, Grounds
from turnout.errors import GatewayError
from turnout.gateway.decide.eligible import lacks_price, mend_of
from turnout.gateway.evidence import Ailment, Sight

__all__ = ["none_eligible", "praise", "why_none"]

_CHANGE = "Change the request, the policy's pool, or the catalog."
_WAIT = "Send it again when the time of Retry-After is over."
_LONGEST_RETRY = 60.0
"""Seconds: SDKs take no longer ones seriously."""

_PRAISE: Mapping[Objective, str] = {
    "quality": "the highest known quality for {task}",
    "latency": "the shortest expected time",
    "cost": "the lowest expected cost",
    "balanced": "the best balance of quality for {task}, latency and cost",
}
_MISSING: Mapping[Objective, str] = {
    "quality": "quality for {task}",
    "latency": "latency (first token and speed together)",
    "cost": "price",
    "balanced": "quality for {task}, latency (first token and speed together) or price",
}


def praise(
    best: DeploymentId,
    objective: Objective,
    task: TaskKind,
    *,
    known: bool,
    of: int,
    lost: Mapping[DeploymentId, str],
    cited: Grounds | None = None,
) -> str:
    """Return why the best of several comes first; `known`: whether it has a score.

    `cited`: what its quality rests on, where it was chosen for that.
    """
    if not known:
        missing = _MISSING[objective].format(task=task)
        order = (
            "in the catalog's order" if objective == "cost" else "the cheapest known price first"
        )
        return f"{best}: no {missing} is known of any eligible deployment; {order}."
    asides = [f"; {id_}: {why}" for id_, why in sorted(lost.items())] if best not in lost else []
    praised = f"{_PRAISE[objective].format(task=task)} of {of} eligible{_citation(cited)}"
    return f"{best}: {praised}{''.join(asides)}."


def _citation(cited: Grounds | None) -> str:
    if cited is None:
        return ""
    over = "" if cited.samples is None else f" over {cited.samples} tasks"
    return f", {cited.value:.2f}{over} ({cited.source})"


def why_none(dropped: Sequence[Candidate]) -> str:
    """Return why nobody is eligible, equal reasons counted."""
    counts = Counter([candidate.dropped for candidate in dropped])
    if not counts:
        return "No deployment is eligible: the catalog is empty."
    listed = ", ".join(f"{n} × {why}" for why, n in counts.most_common())
    return f"No deployment is eligible: {listed}."


def none_eligible(decision: Decision, sight: Sight) -> GatewayError:
    """Return what the client hears of a decision that found nobody.

    503 with every reason, and a Retry-After where waiting helps. 429 where whoever could serve
    has asked to be left alone: what their provider would answer. 403 where a cap on spend keeps
    out whoever could serve.
    """
    reasons = "; ".join(f"{c.deployment}: {c.dropped}" for c in decision.candidates)
    waits = _waits(decision, sight)
    limited = bool(waits) and all(ailment.state == "resting" for ailment in waits)
    soonest = min((ailment.seconds for ailment in waits), default=None)
    status, code = (429, "rate_limit_exceeded") if limited else (503, "no_eligible_model")
    if not waits and any(lacks_price(each.dropped) for each in decision.candidates):
        status, code = 403, "price_unknown"
    return GatewayError(
        f"No model of the catalog may serve this request: {reasons or 'the catalog is empty'}.",
        status=status,
        code=code,
        mend=mend_of(reasons) or (_WAIT if waits else _CHANGE),
        retry_after=None if soonest is None else float(ceil(min(soonest, _LONGEST_RETRY))),
    )


def _waits(decision: Decision, sight: Sight) -> list[Ailment]:
    """Return what keeps those from serving that nothing else keeps from it."""
    found = []
    for candidate in decision.candidates:
        ailment = sight.ailing.get(candidate.deployment)
        if ailment is not None and (candidate.dropped or "").startswith(ailment.why):
            found.append(ailment)
    return found
