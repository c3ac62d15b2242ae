"""A record and the receipts of its calls, side by side."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.samples import receipt
from tests.unit.runs.test_summary import STARTED, call, record

from turnout.core.events import Event, ModelCallDone, RunEnded
from turnout.core.ids import RequestId
from turnout.core.money import Micros
from turnout.core.receipts import Receipt
from turnout.core.usage import Usage
from turnout.runs.spend.compare import Reconciled, compare
from turnout.runs.summary import fold

END = RunEnded("answered", "Done.")
TOKENS = Usage(100, 10)


def asked(name: str, cost: int | None, usage: Usage = TOKENS) -> ModelCallDone:
    """Return a call on record."""
    return replace(call(cost), request_id=RequestId(name), usage=usage)


def paid(name: str, cost: int | None, usage: Usage = TOKENS, **more: object) -> Receipt:
    """Return a receipt."""
    micros = None if cost is None else Micros(cost)
    return replace(receipt(name), cost_micros=micros, usage=usage, **more)


def compared(events: list[Event], receipts: list[Receipt]) -> Reconciled:
    """Compare a run that has ended."""
    return compare(record(STARTED, *events, END), receipts)


def test_what_is_the_same_agrees() -> None:
    """To the micro-dollar and to the token."""
    found = compared([asked("a", 7), asked("b", 5)], [paid("a", 7), paid("b", 5)])
    assert (found.agrees, found.recorded, found.charged) == (True, 12, 12)
    assert found.differences == ()


def test_a_micro_dollar_is_a_difference() -> None:
    """It is shown with its step and both amounts."""
    found = compared([asked("a", 7)], [paid("a", 8)])
    (difference,) = found.differences
    assert not found.agrees
    assert (difference.why, difference.recorded, difference.charged) == ("amount", 7, 8)


def test_so_is_a_token_that_costs_nothing() -> None:
    """Models of one's own have no price."""
    found = compared([asked("a", 0)], [paid("a", 0, Usage(101, 10))])
    assert not found.agrees
    assert found.usage.input_tokens == 101


def test_a_call_that_was_paid_and_never_heard_of_counts() -> None:
    """Such as one that broke off half-way; one that used nothing is no difference."""
    nothing = paid("c", None, Usage(), status="refused")
    found = compared([asked("a", 7)], [paid("a", 7), paid("b", 5, status="truncated"), nothing])
    assert [(each.request_id, each.why) for each in found.differences] == [("b", "not_on_record")]
    assert found.charged == 12


def test_an_answer_that_was_given_again_is_paid_once() -> None:
    """By the receipt of the call that it repeats, whichever id the record has."""
    again = paid("b", 0, Usage(), replay_of=RequestId("a"))
    for name in ("a", "b"):
        assert compared([asked(name, 7)], [paid("a", 7), again]).agrees


def test_a_call_without_a_receipt_counts_as_it_is_on_record() -> None:
    """Receipts go before records, where the settings say so: that is no correction."""
    found = compared([asked("a", 7)], [])
    assert found.agrees
    assert [each.why for each in found.differences] == ["no_receipt"]


def test_what_nobody_can_know_is_counted_apart() -> None:
    """A gateway died over one call, the price of another is not known."""
    lost = paid("b", None, Usage(), status="unknown", routing=None)
    found = compared([asked("a", None)], [paid("a", None), lost])
    assert (found.agrees, found.unknown, found.unpriced) == (True, 1, 1)


@given(
    st.dictionaries(
        st.sampled_from("abcdef"), st.tuples(*[st.none() | st.integers(0, 10**12)] * 2), max_size=6
    )
)
def test_after_its_correction_a_record_agrees(costs: dict[str, tuple[int | None, ...]]) -> None:
    """Whatever differed; and nothing of it is shown again."""
    events: list[Event] = [asked(name, cost) for name, (cost, _) in costs.items()]
    receipts = [paid(name, cost) for name, (_, cost) in costs.items()]
    before = compared(events, receipts)
    entries = record(STARTED, *events, END, before.correction())
    assert fold(entries).cost == before.charged == sum(each.cost_micros or 0 for each in receipts)
    after = compare(entries, receipts)
    assert after.agrees
    assert after.differences == ()
