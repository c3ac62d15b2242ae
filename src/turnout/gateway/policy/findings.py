"""What a sound policy may nevertheless not mean."""

from collections.abc import Iterator
from dataclasses import dataclass

from turnout.core.policies import Policy
from turnout.gateway.catalog import Catalog
from turnout.gateway.policy.aliases import alias_of

__all__ = ["Finding", "findings"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is allowed and probably not meant."""

    field: str
    said: str


def findings(policy: Policy, catalog: Catalog) -> tuple[Finding, ...]:
    """Return what stands out; names of models are judged only where the catalog has some."""
    return (*_tools(policy), *_pool(policy, catalog), *_aliases(policy), *_caps(policy, catalog))


def _tools(policy: Policy) -> Iterator[Finding]:
    tools = policy.tools
    listed = bool(tools.allow or tools.by_kind)
    if tools.mode == "any" and listed:
        yield Finding("tools.mode", "is `any`: the list has no effect.")
    if tools.mode == "enforce" and not listed:
        yield Finding("tools.allow", "is empty: every request that declares a tool is refused.")
    if tools.mode == "dry_run" and listed:
        yield Finding(
            "tools.mode", "is `dry_run`: a tool outside the list is recorded, not refused."
        )


def _pool(policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    pool = policy.pool
    admitted = {
        name
        for deployment in catalog.deployments
        for name in (deployment.model, deployment.id)
        if not pool.models or {deployment.model, deployment.id} & set(pool.models)
        if not {deployment.model, deployment.id} & set(pool.exclude)
    }
    if not catalog.deployments:
        return
    if not admitted:
        yield Finding("pool", "admits no deployment of the catalog.")
        return
    named = [(f"tasks.{rule.task}.model", str(rule.model)) for rule in policy.task_rules]
    named += [("pinned.model", str(policy.pinned.model))] * (policy.pinned.model is not None)
    named += [(f"aliases.{a.name}", a.model) for a in policy.aliases if a.model != "auto"]
    for field, name in named:
        if name not in admitted:
            yield Finding(field, f"names {name}, which the pool does not admit.")


def _aliases(policy: Policy) -> Iterator[Finding]:
    for alias in policy.aliases:
        first = alias_of(policy, alias.name)
        if first is not None and first is not alias:
            yield Finding(
                f"aliases.{alias.name}", f"is never reached: {first.name} fits before it."
            )


def _caps(policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    dark = [d.id for d in catalog.deployments if d.price is None]
    if policy.session.max_spend is None or not dark:
        return
    listed = ", ".join(dark[:5]) + (", …" if len(dark) > 5 else "")
    said = "the cap does not count them" if policy.allow_unpriced else "the cap shuts them out"
    yield Finding("session.max_spend_usd", f"the price of {listed} is unknown: {said}.")
