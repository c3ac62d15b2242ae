"""What is settled before a model is chosen."""

from dataclasses import replace

import pytest

from turnout.core.ids import RequestId, SessionId
from turnout.core.money import Micros, Price
from turnout.core.policies import Policy, SessionCaps
from turnout.errors import GatewayError
from turnout.gateway.catalog import Catalog
from turnout.gateway.exchange import Caller
from turnout.gateway.stages.admission import (
    check_names,
    check_tools,
    release,
    reserve,
    worst_case,
)
from turnout.gateway.tool_rules import ToolJudgement
from turnout.testing.exchange import PLAIN_REQUEST, deployment
from turnout.testing.stores import MemorySessionLedgerStore

CATALOG = Catalog(deployments=(deployment("p/m"),))
CALLER, SESSION = Caller("k"), SessionId("s")


def test_a_refused_tool_is_named() -> None:
    """403, with the name to add or to leave out."""
    check_tools(ToolJudgement(None, ("shell",)))
    with pytest.raises(GatewayError, match="`shell`") as caught:
        check_tools(ToolJudgement("shell", ("shell",)))
    assert (caught.value.status, caught.value.code) == (403, "tool_not_allowed")


@pytest.mark.parametrize("name", ["auto", "m", "p/m"])
def test_auto_models_and_deployments_may_be_named(name: str) -> None:
    """A deployment's id pins provider and model at once."""
    check_names(replace(PLAIN_REQUEST, model=name), Policy(), CATALOG)


def test_a_name_that_is_near_nothing_points_to_the_list() -> None:
    """Guesses that do not fit would mislead."""
    with pytest.raises(GatewayError, match="/v1/models"):
        check_names(replace(PLAIN_REQUEST, model="zzzzzzzz"), Policy(), CATALOG)


def test_the_worst_case_is_the_dearest_deployment_at_full_length() -> None:
    """Every copy that is asked for counts; who has no price counts nothing."""
    cheap = replace(deployment("p/a"), price=Price(1_000_000, 1_000_000), max_output=100)
    dear = replace(deployment("p/b"), price=Price(2_000_000, 2_000_000), max_output=10)
    request = replace(PLAIN_REQUEST, input_tokens_estimate=50)
    assert worst_case(request, [cheap, dear, deployment("p/c")]) == 150
    assert worst_case(replace(request, max_tokens=100), [cheap, dear]) == 300
    twice = replace(request, max_tokens=100, body={**request.body, "n": 2})
    assert worst_case(twice, [cheap]) == 250
    assert worst_case(request, [deployment("p/c")]) == 0
    assert worst_case(replace(request, max_tokens=2**63), [cheap]) == 10**15


@pytest.mark.cases
async def test_parallel_calls_pass_a_spend_cap_by_one_call_at_most() -> None:
    """Each reserves its worst case before the next is looked at."""
    ledger, caps = MemorySessionLedgerStore(), SessionCaps(max_spend=Micros(100))
    for number in range(2):
        await reserve(ledger, CALLER, SESSION, RequestId(f"req-{number}"), Micros(90), caps)
    for number in range(2, 20):
        with pytest.raises(GatewayError) as caught:
            await reserve(ledger, CALLER, SESSION, RequestId(f"req-{number}"), Micros(90), caps)
        assert (caught.value.status, caught.value.code) == (402, "session_spend_cap")


async def test_a_call_that_cost_less_makes_room_again() -> None:
    """The reservation is replaced by the cost."""
    ledger, caps = MemorySessionLedgerStore(), SessionCaps(max_spend=Micros(100))
    for number in range(5):
        request_id = RequestId(f"req-{number}")
        await reserve(ledger, CALLER, SESSION, request_id, Micros(1_000), caps)
        await release(ledger, request_id, Micros(10))
    assert (await ledger.totals("k", SESSION)).spend == 50


async def test_a_release_without_a_reservation_is_nothing() -> None:
    """The client may go away before its place was reserved."""
    await release(MemorySessionLedgerStore(), RequestId("req-0"), Micros(1))
