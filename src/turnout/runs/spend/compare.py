"""A run's record beside the gateway's receipts of its calls, to the micro-dollar."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from turnout.core.events import Entry, ModelCallDone, SpendCorrected
from turnout.core.ids import RequestId, RunId
from turnout.core.money import Micros
from turnout.core.receipts import Receipt
from turnout.core.usage import Usage
from turnout.runs.summary import RunResult, fold

__all__ = ["CallDifference", "Reconciled", "Why", "compare"]

_MOST: Final = 100
"""Requests that a correction names."""

Why = Literal["amount", "not_on_record", "no_receipt"]
"""amount: both know the call, and say something else of it; no_receipt: the receipt was deleted, or
the call was answered by a gateway with another database, so that the record is all there is."""


@dataclass(frozen=True, slots=True)
class CallDifference:
    """A call of which record and receipts do not say the same."""

    request_id: RequestId
    why: Why
    step: int | None
    """None where it is not on record."""
    recorded: Micros | None
    """None where its price is not known, or where it is not on record."""
    charged: Micros | None


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What became of the comparison of one run."""

    run_id: RunId
    ended: bool
    recorded: Micros
    """What the record amounts to, earlier corrections included."""
    charged: Micros
    """What the receipts amount to; a call without one counts as it is on record."""
    recorded_usage: Usage
    usage: Usage
    """Tokens by the receipts, likewise."""
    differences: tuple[CallDifference, ...]
    unknown: int
    """Calls that the gateway died over: what they cost nobody knows."""
    unpriced: int
    """Calls that were served at an unknown price."""
    corrected: bool = False
    """Whether the record was put right just now."""

    @property
    def agrees(self) -> bool:
        """Whether both amount to the same, tokens and micro-dollars."""
        return self.recorded == self.charged and _counts(self.recorded_usage) == _counts(self.usage)

    def correction(self) -> SpendCorrected:
        """Return what puts the record right."""
        requests = tuple(each.request_id for each in self.differences[:_MOST])
        return SpendCorrected(self.recorded, self.charged, self.usage, requests)


def compare(entries: Sequence[Entry], receipts: Iterable[Receipt]) -> Reconciled:
    """Compare a record, which has at least its start, with the receipts of its session and key."""
    result = fold(entries)
    known = {receipt.request_id: receipt for receipt in receipts}
    paid = {
        request: receipt
        for request, receipt in known.items()
        if receipt.replay_of is None and receipt.operation == "answer"
    }
    differences: list[CallDifference] = []
    charged, usage = _sums(paid.values())
    seen: set[RequestId] = set()
    for call in result.calls:
        receipt = _receipt_of(call, known, paid)
        if receipt is None:
            differences.append(_missing(call))
            charged = Micros(charged + (call.routing.cost_micros or 0))
            usage = usage + call.usage
        else:
            seen.add(receipt.request_id)
            differences += _unlike(call, receipt)
    differences += (
        CallDifference(request, "not_on_record", None, None, receipt.cost_micros)
        for request, receipt in paid.items()
        if request not in seen and (receipt.cost_micros or _counts(receipt.usage) != (0, 0, 0, 0))
    )
    return Reconciled(
        run_id=result.run_id,
        ended=result.outcome is not None,
        recorded=result.cost,
        charged=charged,
        recorded_usage=result.usage,
        usage=usage,
        differences=_new(entries, differences),
        unknown=sum(receipt.status == "unknown" for receipt in paid.values()),
        unpriced=_unpriced(result),
    )


def _receipt_of(
    call: ModelCallDone, known: dict[RequestId, Receipt], paid: dict[RequestId, Receipt]
) -> Receipt | None:
    """Return the receipt on which a call's answer was paid for."""
    receipt = known.get(call.request_id)
    if receipt is None or receipt.replay_of is None:
        return receipt
    return paid.get(receipt.replay_of)


def _missing(call: ModelCallDone) -> CallDifference:
    cost = call.routing.cost_micros
    return CallDifference(call.request_id, "no_receipt", call.step, cost, None)


def _unlike(call: ModelCallDone, receipt: Receipt) -> Iterable[CallDifference]:
    recorded, charged = call.routing.cost_micros, receipt.cost_micros
    if recorded != charged or _counts(call.usage) != _counts(receipt.usage):
        yield CallDifference(call.request_id, "amount", call.step, recorded, charged)


def _sums(receipts: Iterable[Receipt]) -> tuple[Micros, Usage]:
    cost, usage = 0, Usage()
    for receipt in receipts:
        cost += receipt.cost_micros or 0
        usage = usage + receipt.usage
    return Micros(cost), usage


def _counts(usage: Usage) -> tuple[int, int, int, int]:
    return (
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_input_tokens,
        usage.cache_creation_input_tokens,
    )


def _new(entries: Sequence[Entry], found: Sequence[CallDifference]) -> tuple[CallDifference, ...]:
    """Return those that no earlier correction has settled; of what it names nothing changes."""
    settled = {
        request
        for entry in entries
        if isinstance(entry.event, SpendCorrected)
        for request in entry.event.requests
    }
    return tuple(each for each in found if each.request_id not in settled)


def _unpriced(result: RunResult) -> int:
    return sum(call.routing.cost_micros is None for call in result.calls)
