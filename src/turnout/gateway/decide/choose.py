"""Filter the deployments, then rank what is left."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from turnout.core.ids import DeploymentId
from turnout.core.policies import Policy
from turnout.core.receipts import Candidate, Decision
from turnout.gateway.catalog import Catalog
from turnout.gateway.decide.eligible import (
    Question,
    drop_reason,
    over_budget,
    question_of,
)
from turnout.gateway.decide.rank import Figures, Score, figures, score_all
from turnout.gateway.decide.reasons import praise, why_none
from turnout.gateway.decide.table import Row, Table, build_table
from turnout.gateway.evidence import Sight
from turnout.gateway.exchange import InferenceRequest

__all__ = ["Decider", "decide"]

_MOST_TABLES = 64
_Lost = Mapping[DeploymentId, str]
"""Why each that gave no answer a moment ago is asked last."""

_NOBODY: Final[_Lost] = MappingProxyType({})


class _Fit(NamedTuple):
    """A deployment that may serve."""

    row: Row
    known: Figures
    score: Score


def decide(request: InferenceRequest, policy: Policy, catalog: Catalog, sight: Sight) -> Decision:
    """Return the deployments that may serve `request`, best first, and why; pure.

    A model or deployment that the request names comes alone; else the model of an open tool
    call comes alone, its deployment first; else the model of the policy's rule for the task kind
    comes first, and the rest in the order of the objective: unknown last, ties to the cheaper;
    where quality is a part of it, or has a floor, whoever's is unknown after all others.
    Of the deployments of the model that comes first, one whose prompt cache is warm leads.
    Whoever gave no answer a moment ago comes after all others. The order is empty where nothing
    is eligible.
    """
    return _decided(
        question_of(request, policy, sight), build_table(catalog, policy, sight.evidence)
    )


class Decider:
    """`decide` on one catalog, with what does not change from request to request made once."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._tables: dict[tuple[int, int], Table] = {}
        """By the identity of pool and bar, which each table keeps alive."""

    def decide(self, request: InferenceRequest, policy: Policy, sight: Sight) -> Decision:
        """Return what `decide` would."""
        key = (id(policy.pool), id(policy.evidence))
        table = self._tables.get(key)
        if table is None or table.evidence is not sight.evidence:
            if len(self._tables) >= _MOST_TABLES:
                self._tables.clear()
            table = self._tables[key] = build_table(self._catalog, policy, sight.evidence)
        return _decided(question_of(request, policy, sight), table)


def _decided(q: Question, table: Table) -> Decision:
    able, dropped = _filtered(q, table)
    scores = score_all(q.objective, [known for _, known in able])
    fits = [_Fit(row, known, score) for (row, known), score in zip(able, scores, strict=True)]
    fits.sort(key=_rank_known if q.floor or q.objective == "balanced" else _rank)
    led = _lead(q, fits)
    lost = _lost(q, fits) if q.sight.ailing else _NOBODY
    if lost:
        fits.sort(key=lambda fit: fit.row.id in lost)
    best = fits[0] if fits else None
    return Decision(
        objective=q.objective,
        task=q.task,
        task_source=q.source,
        order=tuple([fit.row.id for fit in fits]),
        candidates=(*[_candidate(q, fit, lost) for fit in fits], *dropped),
        sticky=q.held is not None,
        policy_revision=q.policy.revision,
        reason=_reason(q, fits, dropped, lost, led),
        caches=best is not None and best.row.caches,
        kept_warm=best is not None and best.row is led,
    )


def _filtered(q: Question, table: Table) -> tuple[list[tuple[Row, Figures]], list[Candidate]]:
    able: list[tuple[Row, Figures]] = []
    dropped: list[Candidate] = []
    for row in table.rows:
        reason = drop_reason(q, row)
        if reason is None:
            able.append((row, figures(q, row)))
        else:
            dropped.append(Candidate(row.id, None, reason))
    if q.sight.budget is None or len(able) < 2:
        return able, dropped
    dear = {row.id: over_budget(known.cost, q) for row, known in able}
    if all(dear.values()):
        # Whether there is enough left for anything at all is admission's business.
        cheapest = min(able, key=lambda pair: pair[1].cost or 0)
        dear[cheapest[0].id] = None
    dropped += [Candidate(row.id, None, dear[row.id]) for row, _ in able if dear[row.id]]
    return [pair for pair in able if dear[pair[0].id] is None], dropped


def _rank(fit: _Fit) -> tuple[bool, float, bool, int]:
    value, cost = fit.score.value, fit.known.cost
    return (value is None, -(value or 0.0), cost is None, cost or 0)


def _rank_known(fit: _Fit) -> tuple[bool, bool, float, bool, int]:
    """Put those last whose quality is unknown, where quality is part of what is asked."""
    unscored, value, unpriced, cost = _rank(fit)
    return (unscored, fit.known.quality is None, value, unpriced, cost)


def _lead(q: Question, fits: list[_Fit]) -> Row | None:
    """Put whoever must lead first; return whom a warm cache put there."""
    if q.held is not None:
        holder = q.held.deployment
        fits.sort(key=lambda fit: fit.row.id != holder)
    elif q.first is not None:
        first = q.first
        fits.sort(key=lambda fit: first not in (fit.row.model, fit.row.id))
    if not (q.sight.warm and q.policy.caching and len(fits) > 1):
        return None
    best, warm = fits[0].row, q.sight.warm
    if q.held is not None or best.id in warm:
        return None
    for place, fit in enumerate(fits):
        if fit.row.model == best.model and fit.row.id in warm:
            fits.insert(0, fits.pop(place))
            return fit.row
    return None


def _lost(q: Question, fits: Sequence[_Fit]) -> _Lost:
    ailing = q.sight.ailing
    return {fit.row.id: ailing[fit.row.id].why for fit in fits if fit.row.id in ailing}


def _candidate(q: Question, fit: _Fit, lost: _Lost) -> Candidate:
    row, (value, note) = fit.row, fit.score
    if row.id in lost:
        note = f"{lost[row.id]}; {note}"
    return Candidate(row.id, value, None, note, row.grounds[q.task])


def _reason(
    q: Question,
    fits: Sequence[_Fit],
    dropped: Sequence[Candidate],
    lost: _Lost,
    led: Row | None,
) -> str:
    if not fits:
        return why_none(dropped)
    best = fits[0].row
    if q.held is not None:
        return f"{best.id}: an open tool call keeps the conversation on {best.model}."
    if q.pinned:
        return f"{best.id}: the request names {q.request.model}."
    if best is led:
        return f"{best.id}: its prompt cache holds the session, which stays there."
    if q.first is not None and q.first in (best.model, best.id):
        return f"{best.id}: the policy's rule for {q.task} tries {q.first} first."
    known = fits[0].score.value is not None
    quality = best.quality.get(q.task) if q.objective == "quality" else None
    cited = None if quality is None else quality.grounds
    return praise(best.id, q.objective, q.task, known=known, of=len(fits), lost=lost, cited=cited)
