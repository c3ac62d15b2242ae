"""Filter the deployments, then rank what is left."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from turnout.core.ids import DeploymentId, ModelId
from turnout.core.inference import Objective
from turnout.core.policies import Policy
from turnout.core.receipts import Candidate, Decision
from turnout.gateway.catalog import Catalog, Deployment
from turnout.gateway.decide.classify import classify
from turnout.gateway.decide.eligible import Question, drop_reason
from turnout.gateway.decide.rank import Figures, Score, figures, score_all
from turnout.gateway.evidence import Evidence
from turnout.gateway.exchange import InferenceRequest
from turnout.gateway.ports import Holder

__all__ = ["decide"]

_LOST = "not reached a moment ago"

_PRAISE: Mapping[Objective, str] = {
    "quality": "the highest known quality for {task}",
    "latency": "the shortest expected time",
    "cost": "the lowest expected cost",
    "balanced": "the best balance of quality for {task}, latency and cost",
}
_MISSING: Mapping[Objective, str] = {
    "quality": "quality for {task}",
    "latency": "latency",
    "cost": "price",
    "balanced": "quality for {task}, latency or price",
}


def decide(
    request: InferenceRequest,
    policy: Policy,
    catalog: Catalog,
    evidence: Mapping[DeploymentId, Evidence],
    held: Holder | None,
) -> Decision:
    """Return the deployments that may serve `request`, best first, and why.

    A model or deployment that the request names comes alone; else the model of an open tool
    call (`held`) comes alone, its deployment first; else the model of the policy's rule for the
    task kind comes first, and the rest in the order of the objective: unknown last, ties to the
    cheaper. Whoever could not be reached lately comes after all others. The order is empty where
    nothing is eligible.
    """
    task = classify(request)
    objective = request.ask.optimize or policy.objective
    keep = held if request.model == "auto" else None
    unset = {p.name: p.unset_key for p in catalog.providers.values() if p.unset_key}
    question = Question(request, policy, objective, task.kind, keep, unset)
    seen = {d.id: evidence.get(d.id, Evidence(d.id)) for d in catalog.deployments}
    dropped = {d.id: drop_reason(question, d, seen[d.id]) for d in catalog.deployments}
    eligible = [d for d in catalog.deployments if dropped[d.id] is None]
    known = {d.id: figures(question, d, seen[d.id]) for d in eligible}
    scores = score_all(question, known)
    ranked = sorted(eligible, key=lambda d: _rank(scores[d.id], known[d.id]))
    first = _first_model(question)
    if keep is not None:
        ranked.sort(key=lambda d: d.id != keep.deployment)
    elif first is not None:
        ranked.sort(key=lambda d: d.model != first)
    ranked.sort(key=lambda d: seen[d.id].lost)
    lost = frozenset(d.id for d in ranked if seen[d.id].lost)
    order = tuple(d.id for d in ranked)
    return Decision(
        objective=objective,
        task=task.kind,
        task_source=task.source,
        order=order,
        candidates=_candidates(catalog.deployments, order, scores, dropped, lost),
        sticky=keep is not None,
        policy_revision=policy.revision,
        reason=_reason(question, ranked, scores, dropped.values(), lost),
    )


def _rank(score: Score, known: Figures) -> tuple[bool, float, bool, int]:
    return (
        score.value is None,
        -(score.value or 0.0),
        known.cost is None,
        known.cost or 0,
    )


def _first_model(question: Question) -> ModelId | None:
    if question.pinned or question.held is not None:
        return None
    rules = question.policy.task_rules
    return next((rule.model for rule in rules if rule.task == question.task), None)


def _candidates(
    deployments: Sequence[Deployment],
    order: Sequence[DeploymentId],
    scores: Mapping[DeploymentId, Score],
    dropped: Mapping[DeploymentId, str | None],
    lost: Collection[DeploymentId],
) -> tuple[Candidate, ...]:
    notes = {i: f"{_LOST}; {scores[i].note}" if i in lost else scores[i].note for i in order}
    ranked = [Candidate(id_, scores[id_].value, None, notes[id_]) for id_ in order]
    rest = [Candidate(d.id, None, dropped[d.id]) for d in deployments if dropped[d.id]]
    return (*ranked, *rest)


def _reason(
    question: Question,
    ranked: Sequence[Deployment],
    scores: Mapping[DeploymentId, Score],
    dropped: Iterable[str | None],
    lost: Collection[DeploymentId],
) -> str:
    if not ranked:
        return _why_none(dropped)
    best = ranked[0]
    if question.held is not None:
        return f"{best.id}: an open tool call keeps the conversation on {best.model}."
    if question.pinned:
        return f"{best.id}: the request names {question.request.model}."
    if best.model == _first_model(question):
        return f"{best.id}: the policy's rule for {question.task} tries {best.model} first."
    if scores[best.id].value is None:
        missing = _MISSING[question.objective].format(task=question.task)
        return f"{best.id}: no {missing} is known of any eligible deployment; cheapest first."
    aside = f"; {', '.join(sorted(lost))}: {_LOST}" if lost and best.id not in lost else ""
    praise = _PRAISE[question.objective].format(task=question.task)
    return f"{best.id}: {praise} of {len(ranked)} eligible{aside}."


def _why_none(dropped: Iterable[str | None]) -> str:
    counts = Counter(filter(None, dropped))
    if not counts:
        return "No deployment is eligible: the catalog is empty."
    listed = ", ".join(f"{n} × {why}" for why, n in counts.most_common())
    return f"No deployment is eligible: {listed}."
