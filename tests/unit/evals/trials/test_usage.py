"""What model calls of a trial add up to."""

from dataclasses import replace

import pytest
from tests.samples import receipt

from turnout.core.events import ModelCallDone
from turnout.core.ids import RequestId
from turnout.core.messages import AssistantMessage
from turnout.core.money import Micros
from turnout.core.usage import Usage
from turnout.evals.trials.model import KindUsage
from turnout.evals.trials.usage import charged, usage_of

SERVED = receipt()


def call(kind, model, *, cost=5):
    """Return a call that was answered in a second and a half."""
    routing = replace(SERVED.routing, model=model, cost_micros=cost)
    usage = Usage(10, 2, cache_read_input_tokens=4)
    message, request = AssistantMessage("hi"), RequestId("r")
    return ModelCallDone(1, kind, "main", "k", request, message, "stop", usage, routing, 1500)


def test_calls_add_up_by_what_they_were_for_and_who_answered():
    """In the order in which they came; a price that is not known leaves the cost unknown."""
    calls = [call("plan", "m"), call("act", "n"), call("act", "m"), call("act", "n", cost=None)]
    assert usage_of(calls) == (
        KindUsage("plan", "m", 1, 10, 2, 4, Micros(5), 1.5),
        KindUsage("act", "n", 2, 20, 4, 8, None, 3.0),
        KindUsage("act", "m", 1, 10, 2, 4, Micros(5), 1.5),
    )


def test_a_program_is_charged_for_what_it_asked_the_gateway():
    """A call that nothing served costs nothing and is none."""
    priced = replace(SERVED, cost_micros=Micros(3))
    usage, cost = charged([priced, replace(priced, routing=None), priced])
    (only,) = usage
    assert (only.kind, only.model, only.calls) == ("act", SERVED.model, 2)
    assert (only.cost_micros, cost) == (6, 6)


@pytest.mark.parametrize("receipts", [[], [replace(SERVED, cost_micros=None)]])
def test_what_a_program_has_cost_may_be_unknown(receipts):
    """Where a price is, and where it asked models elsewhere."""
    assert charged(receipts)[1] is None
