"""What the calls of an arm say about its pool and rules, in sentences."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from turnout.core.inference import StepKind
from turnout.evals.conditions.model import Conditions
from turnout.evals.report.model import Advice, Kind

__all__ = ["Price", "prices_of", "warnings_of"]

_ROUTED: Final = ("auto", "policy:")
"""How names of arms begin whose calls are routed, unless they were given another name."""
_MOST_MODELS: Final = 2
"""Strong ones for the plan, or fast ones for act steps."""
_FEW: Final = 0.05
"""Share of a kind's calls below which a model does not count as one that takes them."""


@dataclass(frozen=True, slots=True)
class Price:
    """What a model asks for, in US dollars a million tokens."""

    input: float
    output: float

    def of(self, kind: Kind) -> float:
        """Return what calls with as many tokens would cost at it, caches aside."""
        return self.input * kind.input_tokens + self.output * kind.output_tokens


def prices_of(conditions: Iterable[Conditions]) -> Mapping[str, Price]:
    """Return the known prices by the name of the model; the newest, and of several the lowest."""
    found: dict[str, Price] = {}
    for each in conditions:
        own: dict[str, Price] = {}
        for used in each.models:
            try:
                price = Price(float(used.input_usd), float(used.output_usd))
            except ValueError:
                continue
            before = own.get(used.model)
            if before is None or (price.input, price.output) < (before.input, before.output):
                own[used.model] = price
        found.update(own)
    return found


def warnings_of(
    arm: str, kinds: Sequence[Kind], prices: Mapping[str, Price] | None = None
) -> tuple[Advice, ...]:
    """Return what should be looked at; arms that are pinned to a model route nothing.

    `prices` are those of the models that were there, by name.
    """
    models = {share.model for kind in kinds for share in kind.models}
    routed = arm.startswith(_ROUTED) or len(models) > 1
    return tuple(_warnings(kinds, prices or {})) if routed else ()


def _warnings(kinds: Sequence[Kind], prices: Mapping[str, Price]) -> Iterator[Advice]:
    named = {kind.kind: kind for kind in kinds}
    costs = {name: kind.cost_micros for name, kind in named.items()}
    act, plan, answer = (costs.get(name, 0) for name in ("act", "plan", "answer"))
    if act is not None and plan is not None and answer is not None and act > plan + answer:
        spent = sum(cost for cost in costs.values() if cost is not None)
        share = f"{act / spent:.0%} of the cost, more than plan and answer together"
        yield Advice("Act steps in the cost", _said_of_act(named, prices, share))
    scattered = [
        f"{len(taking)} models share the {kind.kind} calls ({', '.join(taking)})"
        for kind in kinds
        if len(taking := _taking(kind)) > _MOST_MODELS
    ]
    if scattered:
        told = "; ".join(scattered)
        yield Advice("Models", f"{told}; one or two should. Look at the pool or its rules.")


def _said_of_act(named: Mapping[StepKind, Kind], prices: Mapping[str, Price], share: str) -> str:
    """Return what follows of so large a share: a cause only where prices show it.

    There are more act steps than plans, so that a large share by itself says nothing of models.
    """
    act = named["act"]
    every = sum(kind.calls for kind in named.values())
    told = f"They make up {share}, with {act.calls:,} of {every:,} calls"
    taking = _taking(act)
    if not taking or any(model not in prices for model in taking):
        return f"{told}."
    dearest = max(taking, key=lambda model: prices[model].of(act))
    asked = prices[dearest].of(act)
    cheapest = min(prices, key=lambda model: prices[model].of(act))
    if prices[cheapest].of(act) >= asked:
        return f"{told}, by the cheapest model there is ({dearest})."
    planning = named.get("plan") or named.get("answer")
    plans = [prices[m].of(act) for m in _taking(planning) if m in prices] if planning else []
    if plans and asked < max(plans):
        return f"{told}, by a cheaper model ({dearest}) than the plan."
    return (
        f"{told}, by {dearest}, although {cheapest} is cheaper: the latency objective does not "
        "land on cheap models. Look at the pool."
    )


def _taking(kind: Kind) -> list[str]:
    """Return the models that take more than a few calls of a kind."""
    return [each.model for each in kind.models if each.calls >= _FEW * kind.calls]
