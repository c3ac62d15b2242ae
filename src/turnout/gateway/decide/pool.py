"""Which deployments a pool admits, by what the catalog says of them."""

from collections.abc import Iterator

from turnout.core.policies import PoolRule
from turnout.gateway.catalog import Deployment, Provider

__all__ = ["outside"]


def outside(rule: PoolRule, deployment: Deployment, provider: Provider | None) -> str | None:
    """Return why the pool does not hold a deployment; None where it does.

    What is not known of it does not satisfy a rule. The rule's tool-use rate is not looked at:
    that is measured, not stated.
    """
    return next(_reasons(rule, deployment, provider), None)


def _reasons(rule: PoolRule, deployment: Deployment, provider: Provider | None) -> Iterator[str]:
    names = {deployment.model, deployment.id}
    if rule.models and not names.intersection(rule.models):
        yield "outside the pool"
    if names.intersection(rule.exclude):
        yield "excluded from the pool"
    if rule.providers and deployment.provider not in rule.providers:
        yield f"outside the pool: its provider is {deployment.provider}"
    region = deployment.region or (provider.region if provider else "")
    if rule.regions and region not in rule.regions:
        yield f"outside the pool: its region is {region or 'unknown'}"
    labels = deployment.labels | (provider.labels if provider else frozenset())
    if missing := [label for label in rule.labels if label not in labels]:
        yield f"outside the pool: it lacks the label {missing[0]}"
    window = deployment.context_window
    if rule.min_context is not None and (window is None or window < rule.min_context):
        yield f"outside the pool: its context window has {window or 'unknown'} tokens"
    price = deployment.price
    yield from _dear("input", rule.max_input_price, None if price is None else price.input)
    yield from _dear("output", rule.max_output_price, None if price is None else price.output)


def _dear(what: str, most: int | None, price: int | None) -> Iterator[str]:
    if most is not None and (price is None or price > most):
        known = "unknown" if price is None else f"{price} µUSD per million tokens"
        yield f"outside the pool: its {what} price is {known}"
