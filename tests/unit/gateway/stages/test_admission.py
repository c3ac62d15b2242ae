"""What is settled before a model is chosen."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from turnout.core.govern.closing import Charge
from turnout.core.govern.keys import KeyLimits
from turnout.core.ids import SessionId
from turnout.core.money import Micros, Price, PriceTier
from turnout.core.policies import Policy, Reservation, SessionCaps, SessionTotals
from turnout.errors import GatewayError
from turnout.gateway.catalog import Catalog
from turnout.gateway.exchange import Caller
from turnout.gateway.stages.admission import (
    charges_for,
    check_names,
    refusal,
    spend_is_capped,
    worst_case,
)
from turnout.testing.books import MemoryBooks
from turnout.testing.exchange import PLAIN_REQUEST, deployment

NOW = datetime(2026, 1, 1, 12, 34, 56, tzinfo=UTC)
CATALOG = Catalog(deployments=(deployment("p/m"),))
CALLER = Caller("k")
IN_SESSION = replace(PLAIN_REQUEST, session=SessionId("s"))
CAPPED = Policy(session=SessionCaps(max_requests=9, max_spend=Micros(100)))


@pytest.mark.parametrize("name", ["auto", "m", "p/m"])
def test_auto_models_and_deployments_may_be_named(name: str) -> None:
    """A deployment's id pins provider and model at once."""
    check_names(replace(PLAIN_REQUEST, model=name), CATALOG)


def test_a_name_that_is_near_nothing_points_to_the_list() -> None:
    """Guesses that do not fit would mislead."""
    with pytest.raises(GatewayError, match="/v1/models"):
        check_names(replace(PLAIN_REQUEST, model="zzzzzzzz"), CATALOG)


def test_a_request_without_caps_and_limits_is_charged_nothing() -> None:
    """It then takes no look at the books."""
    assert charges_for(CALLER, IN_SESSION, Policy(), NOW) == ()


def test_a_request_is_charged_to_its_session_and_its_key() -> None:
    """The session is the key's own, minute and day are those of UTC."""
    limited = replace(CALLER, limits=KeyLimits(60, 4, Micros(5)))
    assert charges_for(limited, IN_SESSION, CAPPED, NOW) == (
        Charge("session", "k", "s", CAPPED.session),
        Charge("key_minute", "k", "2026-01-01T12:34", SessionCaps(max_requests=60)),
        Charge("key_day", "k", "2026-01-01", SessionCaps(max_spend=Micros(5))),
    )


def test_a_request_without_a_session_is_a_session_of_its_own() -> None:
    """Caps that admit one request admit each of them; caps that admit none, none."""
    assert charges_for(CALLER, PLAIN_REQUEST, CAPPED, NOW) == ()
    for caps, code in (
        (SessionCaps(max_requests=0), "session_request_cap"),
        (SessionCaps(max_spend=Micros(0)), "session_spend_cap"),
    ):
        with pytest.raises(GatewayError) as caught:
            charges_for(CALLER, PLAIN_REQUEST, Policy(session=caps), NOW)
        assert caught.value.code == code


def test_spend_is_capped_by_session_or_key() -> None:
    """A count of requests caps no spend."""
    limited = replace(CALLER, limits=KeyLimits(requests_per_minute=1))
    assert not spend_is_capped(charges_for(limited, IN_SESSION, Policy(), NOW))
    assert spend_is_capped(charges_for(limited, IN_SESSION, CAPPED, NOW))
    spending = replace(CALLER, limits=KeyLimits(spend_per_day=Micros(1)))
    assert spend_is_capped(charges_for(spending, PLAIN_REQUEST, Policy(), NOW))


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


def test_the_worst_case_writes_the_whole_prompt_to_a_cache() -> None:
    """Where that costs more than to send it."""
    price = Price(1_000_000, 1_000_000, cache_read=100_000, cache_write=1_250_000)
    marks = replace(deployment("p/a"), price=price, max_output=10)
    assert worst_case(replace(PLAIN_REQUEST, input_tokens_estimate=1_000), [marks]) == 1_260


@pytest.mark.cases
def test_a_long_prompt_is_reserved_at_the_price_of_long_prompts() -> None:
    """Also where only the true count of its tokens may reach that tier."""
    long = Price(4_000_000, 6_000_000)
    price = Price(2_000_000, 3_000_000, tiers=(PriceTier(200_000, long),))
    tiered = replace(deployment("p/a"), price=price, max_output=1_000)

    def worst(tokens: int) -> int:
        return worst_case(replace(PLAIN_REQUEST, input_tokens_estimate=tokens), [tiered])

    assert worst(100_000) == 200_000 + 3_000
    assert worst(180_000) == 720_000 + 6_000
    assert worst(300_000) == 1_200_000 + 6_000


@pytest.mark.cases
async def test_parallel_calls_pass_a_spend_cap_by_one_call_at_most() -> None:
    """Each reserves its worst case before the next is looked at."""
    books = MemoryBooks()
    charges = charges_for(CALLER, IN_SESSION, CAPPED, NOW)
    places = [await books.open(charges, Micros(90)) for _ in range(20)]
    assert [place.granted for place in places] == [True] * 2 + [False] * 18
    error = refusal(places[-1], charges, NOW)
    assert (error.status, error.code) == (402, "session_spend_cap")


@pytest.mark.parametrize(
    ("kind", "exceeded", "status", "code", "retry_after"),
    [
        ("session", "requests", 429, "session_request_cap", None),
        ("session", "spend", 402, "session_spend_cap", None),
        ("key_minute", "requests", 429, "rate_limit_exceeded", 4),
        ("key_day", "spend", 402, "key_spend_cap", None),
    ],
)
def test_a_refusal_says_which_cap_and_whether_to_wait(
    kind: str, exceeded: str, status: int, code: str, retry_after: int | None
) -> None:
    """Only a minute passes soon enough to be waited for."""
    limited = replace(CALLER, limits=KeyLimits(60, 4, Micros(5)))
    charges = charges_for(limited, IN_SESSION, CAPPED, NOW)
    place = Reservation(False, exceeded, SessionTotals(9, Micros(100)), kind)
    error = refusal(place, charges, NOW)
    assert (error.status, error.code, error.retry_after) == (status, code, retry_after)
    assert error.mend


@pytest.mark.parametrize("second", range(60))
def test_a_rate_limit_is_over_within_a_minute(second: int) -> None:
    """Clients take a longer wait for none and try again at once."""
    now = NOW.replace(second=second)
    limited = replace(CALLER, limits=KeyLimits(requests_per_minute=1))
    charges = charges_for(limited, PLAIN_REQUEST, Policy(), now)
    place = Reservation(False, "requests", SessionTotals(1, Micros(0)), "key_minute")
    wait = refusal(place, charges, now).retry_after
    assert wait is not None
    assert 1 <= wait <= 60
    later = now + timedelta(seconds=wait)
    assert charges_for(limited, PLAIN_REQUEST, Policy(), later) != charges
