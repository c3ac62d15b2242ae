"""Names that clients send for models, and what a policy has them stand for."""

from dataclasses import replace

from turnout.core.policies import Alias, Policy
from turnout.gateway.exchange import InferenceRequest

__all__ = ["alias_of", "aliased"]


def aliased(policy: Policy, request: InferenceRequest) -> InferenceRequest:
    """Return the request with the name of its model resolved; itself where no alias fits.

    What the alias is routed for counts where the request itself does not say.
    """
    alias = alias_of(policy, request.model)
    if alias is None:
        return request
    ask = request.ask
    if alias.optimize is not None or alias.task is not None:
        ask = replace(ask, optimize=ask.optimize or alias.optimize, task=ask.task or alias.task)
    return replace(request, model=alias.model, ask=ask)


def alias_of(policy: Policy, name: str) -> Alias | None:
    """Return the first alias that fits; None where the name is used as it is."""
    if name == "auto":
        return None
    return next((alias for alias in policy.aliases if _fits(alias.name, name)), None)


def _fits(pattern: str, name: str) -> bool:
    """Whether a name is the pattern with something in place of each asterisk."""
    first, *rest = pattern.split("*")
    if not rest:
        return first == name
    if not name.startswith(first):
        return False
    at = len(first)
    for part in rest[:-1]:
        at = name.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return name.endswith(rest[-1]) and len(name) - len(rest[-1]) >= at
