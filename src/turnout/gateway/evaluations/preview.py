"""What evaluations would change: whom requests go to before and after; no model is called."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import orjson

from turnout.core.govern.evidence import Evaluation, QualityResult, in_force
from turnout.core.ids import DeploymentId, ProviderName
from turnout.core.inference import Objective, TaskKind
from turnout.core.policies import Policy
from turnout.core.receipts import Decision
from turnout.gateway.catalog import Catalog
from turnout.gateway.decide import decide
from turnout.gateway.evidence import Sight, Snapshot
from turnout.gateway.exchange import InferenceRequest
from turnout.gateway.measure.live import measured
from turnout.gateway.policy.book import govern_under
from turnout.gateway.wire.shapes import CHAT

__all__ = ["Preview", "Prospect", "RouteChange", "preview"]


@dataclass(frozen=True, slots=True)
class Prospect:
    """What decisions are made from, beside what evaluations say."""

    policies: Sequence[Policy]
    """Those in force, the default one first."""
    catalog: Catalog
    evidence: Snapshot
    unset_keys: Callable[[Policy], Mapping[ProviderName, str]]
    """The variables that are not set, of those that a policy names for keys of providers."""


@dataclass(frozen=True, slots=True)
class RouteChange:
    """Whom a request of one kind goes to, under one policy."""

    policy: str
    objective: Objective
    task: TaskKind
    before: DeploymentId | None
    """None: nobody is eligible."""
    after: DeploymentId | None
    reason: str
    """Of the decision after, in one sentence for people."""

    @property
    def changes(self) -> bool:
        """Whether it would go to somebody else."""
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class Preview:
    """What it means to apply an evaluation, or to take one back."""

    routes: tuple[RouteChange, ...]
    """For each policy and objective, of the task kinds that something changes for."""
    counts: tuple[QualityResult, ...]
    """What counts then."""
    forgotten: tuple[QualityResult, ...]
    """What counted until then, of models of which nothing counts any more."""
    unknown: tuple[str, ...]
    """Models of which something counts then, and that no deployment has."""


def preview(
    prospect: Prospect, before: Sequence[Evaluation], after: Sequence[Evaluation]
) -> Preview:
    """Return what changes once other evaluations are applied; each sequence is in their order."""
    old, new = in_force(before), in_force(after)
    tasks = {each.task for each in set(old) ^ set(new)}
    known = {(each.subject, each.task) for each in new}
    catalog = prospect.catalog
    names = {*(d.model for d in catalog.deployments), *(d.id for d in catalog.deployments)}
    return Preview(
        tuple(_routes(prospect, old, new, [t for t in get_args(TaskKind) if t in tasks])),
        new,
        tuple(each for each in old if (each.subject, each.task) not in known),
        tuple(dict.fromkeys(each.subject for each in new if each.subject not in names)),
    )


def _routes(
    prospect: Prospect,
    old: Sequence[QualityResult],
    new: Sequence[QualityResult],
    tasks: Sequence[TaskKind],
) -> Iterator[RouteChange]:
    before = replace(prospect.evidence, quality=measured(old))
    after = replace(prospect.evidence, quality=measured(new))
    for policy in prospect.policies:
        unset = prospect.unset_keys(policy)
        for task in tasks:
            for objective in get_args(Objective):
                asked = _asked(objective, task)
                first, then = (
                    _decided(
                        prospect.catalog, policy, asked, Sight(evidence=seen, unset_keys=unset)
                    )
                    for seen in (before, after)
                )
                yield RouteChange(
                    policy.name, objective, task, _best(first), _best(then), then.reason
                )


def _decided(catalog: Catalog, policy: Policy, asked: InferenceRequest, sight: Sight) -> Decision:
    """Decide for a request with a tool, as agents send it; where nobody takes tools, without."""
    _, request = govern_under(policy, asked)
    found = decide(request, policy, catalog, sight)
    return found if found.order else decide(replace(request, tools=()), policy, catalog, sight)


def _asked(objective: Objective, task: TaskKind) -> InferenceRequest:
    body = {
        "model": "auto",
        "messages": [{"role": "user", "content": "Hello"}],
        "tools": [{"type": "function", "function": {"name": "run"}}],
        "routing": {"optimize": objective, "task": task},
    }
    return CHAT.parse(orjson.dumps(body), {})


def _best(decision: Decision) -> DeploymentId | None:
    return decision.order[0] if decision.order else None
