"""Model calls of a run added up by what they were for and who answered."""

from collections.abc import Sequence

from turnout.core.events import ModelCallDone
from turnout.core.inference import StepKind
from turnout.core.money import Micros
from turnout.core.receipts import Receipt
from turnout.evals.trials.model import KindUsage

__all__ = ["charged", "usage_of"]


def usage_of(calls: Sequence[ModelCallDone]) -> tuple[KindUsage, ...]:
    """Return one sum for each kind and model, in the order in which they were first called."""
    groups: dict[tuple[StepKind, str], list[ModelCallDone]] = {}
    for call in calls:
        groups.setdefault((call.kind, call.routing.model), []).append(call)
    return tuple(_sum(kind, model, group) for (kind, model), group in groups.items())


def _sum(kind: StepKind, model: str, calls: Sequence[ModelCallDone]) -> KindUsage:
    costs = [call.routing.cost_micros for call in calls]
    known = [cost for cost in costs if cost is not None]
    return KindUsage(
        kind,
        model,
        len(calls),
        sum(call.usage.input_tokens for call in calls),
        sum(call.usage.output_tokens for call in calls),
        sum(call.usage.cache_read_input_tokens for call in calls),
        Micros(sum(known)) if len(known) == len(costs) else None,
        sum(call.latency_ms for call in calls) / 1000,
    )


def charged(receipts: Sequence[Receipt]) -> tuple[tuple[KindUsage, ...], Micros | None]:
    """Return the same for calls of a program that does not say what they are for, and their cost.

    The cost is None where a call has no known price, and where there was none: the program may have
    asked models elsewhere.
    """
    groups: dict[str, list[Receipt]] = {}
    for receipt in receipts:
        if receipt.model is not None:
            groups.setdefault(receipt.model, []).append(receipt)
    usage = tuple(_sum_of(model, group) for model, group in groups.items())
    costs = [each.cost_micros for each in usage]
    known = [cost for cost in costs if cost is not None]
    return usage, Micros(sum(known)) if known and len(known) == len(costs) else None


def _sum_of(model: str, receipts: Sequence[Receipt]) -> KindUsage:
    costs = [receipt.cost_micros for receipt in receipts]
    known = [cost for cost in costs if cost is not None]
    return KindUsage(
        "act",
        model,
        len(receipts),
        sum(receipt.usage.input_tokens for receipt in receipts),
        sum(receipt.usage.output_tokens for receipt in receipts),
        sum(receipt.usage.cache_read_input_tokens for receipt in receipts),
        Micros(sum(known)) if len(known) == len(costs) else None,
        sum(receipt.latency_ms for receipt in receipts) / 1000,
    )
