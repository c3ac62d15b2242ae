"""What the calls of an arm say about its pool and rules, in sentences."""

from collections.abc import Iterator, Sequence
from typing import Final

from turnout.evals.report.model import Kind

__all__ = ["warnings_of"]

_ROUTED: Final = ("auto", "policy:")
"""How names of arms begin whose calls are routed, unless they were given another name."""
_MOST_MODELS: Final = 2
"""Strong ones for the plan, or fast ones for act steps."""
_FEW: Final = 0.05
"""Share of a kind's calls below which a model does not count as one that takes them."""


def warnings_of(arm: str, kinds: Sequence[Kind]) -> tuple[str, ...]:
    """Return what should be looked at; arms that are pinned to a model route nothing."""
    models = {share.model for kind in kinds for share in kind.models}
    routed = arm.startswith(_ROUTED) or len(models) > 1
    return tuple(_warnings(kinds)) if routed else ()


def _warnings(kinds: Sequence[Kind]) -> Iterator[str]:
    costs = {kind.kind: kind.cost_micros for kind in kinds}
    act, plan, answer = (costs.get(name, 0) for name in ("act", "plan", "answer"))
    if act is not None and plan is not None and answer is not None and act > plan + answer:
        spent = sum(cost for cost in costs.values() if cost is not None)
        yield (
            f"Act steps make up {act / spent:.0%} of the cost, more than plan and answer together: "
            "the latency objective does not land on cheap models. Look at the pool."
        )
    for kind in kinds:
        taking = [each.model for each in kind.models if each.calls >= _FEW * kind.calls]
        if len(taking) > _MOST_MODELS:
            yield (
                f"{len(taking)} models share the {kind.kind} calls ({', '.join(taking)}); one or "
                "two should. Look at the pool or its rules."
            )
