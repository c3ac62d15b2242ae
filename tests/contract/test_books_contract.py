import asyncio
import contextlib
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.samples import NOON, receipt

from turnout.core.govern.closing import Charge, Closing, KeptReply, MadeCalls, StoredResponse
from turnout.core.money import Micros
from turnout.core.policies import SessionCaps, SessionTotals
from turnout.core.tools import Holder
from turnout.errors import StoreError
from turnout.store.affinity import AffinityStore
from turnout.store.books import BooksStore
from turnout.store.receipts import ReceiptsStore
from turnout.store.replies import RepliesStore
from turnout.store.responses import ResponsesStore
from turnout.testing.books import MemoryBooks

FREE = SessionCaps()


@pytest.fixture(params=["memory", "sql"])
def books(request, database):
    """Return empty ones of each kind."""
    return MemoryBooks() if request.param == "memory" else BooksStore(database)


def session(caps=FREE, *, key="k", name="s"):
    """Return the charge of a session."""
    return Charge("session", key, name, caps)


def minute(most, *, key="k", name="2026-01-01T12:00"):
    """Return the charge of a key's minute."""
    return Charge("key_minute", key, name, SessionCaps(max_requests=most))


def day(most, *, key="k"):
    """Return the charge of a key's day."""
    return Charge("key_day", key, "2026-01-01", SessionCaps(max_spend=most))


def closing(name, *charges, worst=0, actual=0):
    """Return what a request of that id leaves behind."""
    return Closing(receipt(name), charges, Micros(worst), Micros(actual))


async def test_what_was_never_charged_has_used_nothing(books):
    """No row is needed to ask."""
    assert await books.totals("k", "s") == SessionTotals(0, 0)


async def test_a_reservation_counts_before_it_is_settled(books):
    """With its worst case, and tells the totals before itself."""
    first = await books.open([session()], 100)
    second = await books.open([session()], 50)
    assert (first.granted, first.totals) == (True, SessionTotals(0, 0))
    assert (second.granted, second.totals) == (True, SessionTotals(1, 100))
    assert await books.totals("k", "s") == SessionTotals(2, 150)


async def test_closing_replaces_the_worst_case(books):
    """The request stays counted."""
    await books.open([session()], 100)
    await books.close(closing("req-1", session(), worst=100, actual=30))
    assert await books.totals("k", "s") == SessionTotals(1, 30)


async def test_a_request_over_the_request_cap_is_refused(books):
    """The charge and its cap are named, and nothing is counted."""
    charge = session(SessionCaps(max_requests=1))
    await books.open([charge], 1)
    refused = await books.open([charge], 1)
    assert not refused.granted
    assert (refused.exceeded, refused.refused_by) == ("requests", "session")
    assert refused.totals == await books.totals("k", "s") == SessionTotals(1, 1)


async def test_a_request_over_the_spend_cap_is_refused(books):
    """Reserved money counts as spent; a request that only reaches past the cap is let through."""
    charge = session(SessionCaps(max_spend=100))
    assert (await books.open([charge], 99)).granted
    assert (await books.open([charge], 99)).granted
    assert (await books.open([charge], 1)).exceeded == "spend"


@pytest.mark.parametrize("caps", [SessionCaps(max_requests=0), SessionCaps(max_spend=0)])
async def test_a_cap_of_nothing_admits_nobody(books, caps):
    """Not even the first, for whom there is no row to look at."""
    refused = await books.open([session(caps)], 0)
    assert not refused.granted
    assert await books.totals("k", "s") == SessionTotals(0, 0)


async def test_what_was_reserved_and_not_spent_is_free_again(books):
    """Once the request has ended."""
    charge = session(SessionCaps(max_spend=100))
    await books.open([charge], 100)
    assert not (await books.open([charge], 1)).granted
    await books.close(closing("req-1", charge, worst=100, actual=1))
    assert (await books.open([charge], 1)).granted


@pytest.mark.parametrize("refusing", [0, 1, 2])
async def test_a_request_that_one_charge_refuses_counts_on_none(books, refusing):
    """Whichever it is: a call refused for spend leaves the minute as it was."""
    charges = [session(), minute(100), day(10**6)]
    shut = [session(SessionCaps(max_spend=0)), minute(0), day(0)][refusing]
    mixed = [*charges[:refusing], shut, *charges[refusing + 1 :]]
    refused = await books.open(mixed, 5)
    assert (refused.granted, refused.refused_by) == (False, shut.kind)
    for charge in charges:
        assert await books.totals("k", charge.name, kind=charge.kind) == SessionTotals(0, 0)


async def test_a_request_counts_on_all_of_its_charges(books):
    """And is settled on all of them."""
    charges = (session(), minute(100), day(10**6))
    await books.open(charges, 50)
    await books.close(closing("req-1", *charges, worst=50, actual=20))
    for charge in charges:
        assert await books.totals("k", charge.name, kind=charge.kind) == SessionTotals(1, 20)


async def test_fifty_requests_at_once_pass_a_spend_cap_by_one_at_most(books):
    """The sum of what was granted is below the cap until the last one."""
    charge = session(SessionCaps(max_spend=1_000))
    asked = (books.open([charge], 300) for _ in range(50))
    assert sum(one.granted for one in await asyncio.gather(*asked)) == 4


async def test_fifty_requests_at_once_keep_a_request_cap_exactly(books):
    """No two of them see the same count."""
    charge = session(SessionCaps(max_requests=7))
    asked = (books.open([charge], 0) for _ in range(50))
    granted = [one for one in await asyncio.gather(*asked) if one.granted]
    assert sorted(one.totals.requests for one in granted) == list(range(7))


async def test_scopes_do_not_share_a_session(books):
    """One key cannot use up another key's session of the same name."""
    caps = SessionCaps(max_requests=1)
    await books.open([session(caps, key="mine")], 5)
    assert (await books.open([session(caps, key="yours")], 5)).granted


async def test_a_session_named_like_a_day_is_not_that_day(books):
    """What is charged is told apart by kind too."""
    await books.open([day(10)], 10)
    named = session(SessionCaps(max_spend=10), name="2026-01-01")
    assert (await books.open([named], 5)).granted


async def test_names_are_kept_whatever_they_hold(books):
    """Session ids come from clients."""
    for name in ("a\\b", "é 🛤", "'; --", "%s ? :name"):
        charge = session(SessionCaps(max_requests=1), name=name)
        assert (await books.open([charge], 1)).granted
        assert not (await books.open([charge], 1)).granted
        assert await books.totals("k", name) == SessionTotals(1, 1)


async def test_sums_beyond_32_bits_stay_exact(books):
    """Four thousand dollars are more micro-USD than a 32-bit number holds."""
    await books.open([session()], 2**40)
    await books.open([session()], 2**40)
    assert (await books.totals("k", "s")).spend == 2**41


async def test_what_is_left_is_the_least_of_all_caps(books):
    """As far as was seen: unknown before the first request, never below nothing."""
    charges = [session(SessionCaps(max_spend=100)), day(70)]
    await books.open(charges, 60)
    assert books.left(charges) == 10
    await books.close(closing("req-1", *charges, worst=60, actual=20))
    assert books.left(charges) == 50
    await books.open(charges, 60)
    assert books.left(charges) == 0
    assert books.left([session()]) is None


async def test_a_request_has_one_receipt(books):
    """A second one is refused with all that comes with it."""
    await books.open([session()], 10)
    await books.close(closing("req-1", session(), worst=10, actual=3))
    with pytest.raises(StoreError, match="req-1 already has a receipt"):
        await books.close(closing("req-1", session(), worst=10, actual=3))
    assert await books.totals("k", "s") == SessionTotals(1, 3)


async def test_who_was_taken_for_dead_says_what_became_of_its_request(books):
    """Its own receipt takes the place of the unknown one, and nothing takes its own."""
    lost = replace(receipt("req-1"), status="unknown", routing=None, cost_micros=None)
    await books.close(Closing(lost))
    await books.close(closing("req-1", actual=1))
    with pytest.raises(StoreError, match="req-1 already has a receipt"):
        await books.close(Closing(lost))


async def test_one_that_cannot_be_closed_leaves_its_neighbours_alone(books):
    """Although requests that end together share a commit."""
    closings = [closing(name) for name in ("req-1", "req-2", "req-1", "req-3")]
    results = await asyncio.gather(*map(books.close, closings), return_exceptions=True)
    assert [isinstance(one, StoreError) for one in results] == [False, False, True, False]


async def test_a_cancelled_opening_counts_on_nothing(books):
    """Whether its turn had come or not: the gateway never learns that it was granted."""
    charge = session(SessionCaps(max_requests=100))
    for turns in range(12):
        opening = asyncio.create_task(books.open([charge], 10))
        for _ in range(turns):
            await asyncio.sleep(0)
        opening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await opening
            await books.close(closing(f"req-{turns}", charge, worst=10, actual=0))
    if isinstance(books, BooksStore):
        await books.finish()
    granted = (await books.totals("k", "s")).requests
    assert await books.totals("k", "s") == SessionTotals(granted, 0)
    assert granted < 12


async def test_a_request_is_closed_even_where_its_task_is_cancelled(books):
    """A client that goes away does not take its receipt along."""
    for turns in range(4):
        closing_it = asyncio.create_task(books.close(closing(f"req-{turns}")))
        for _ in range(turns + 1):
            await asyncio.sleep(0)
        closing_it.cancel()
        await asyncio.wait({closing_it})
    await books.close(closing("req-4"))
    for turns in range(4):
        with pytest.raises(StoreError, match="already has a receipt"):
            await books.close(closing(f"req-{turns}"))


async def test_all_that_a_request_leaves_behind_is_there_together(database):
    """Receipt, cost, calls, kept answer and stored response."""
    books, replies = BooksStore(database), RepliesStore(database)
    claim = KeptReply("k", "once", "digest", "", NOON, "req-1")
    await replies.claim(claim, NOON - timedelta(hours=1))
    holder = Holder("m", "p/m")
    await books.open([session()], 9)
    await books.close(
        replace(
            closing("req-1", session(), worst=9, actual=4),
            made=MadeCalls("k", ("call-1", "call-2"), holder, "hm"),
            kept=replace(claim, payload='"kept"', until=NOON + timedelta(hours=1)),
            stored=StoredResponse("k", "req-1", "[]", holder),
        )
    )
    assert await ReceiptsStore(database).get("req-1") == receipt("req-1")
    assert await books.totals("k", "s") == SessionTotals(1, 4)
    assert await AffinityStore(database).holder("k", ["call-2"]) == holder
    assert (await replies.claim(claim, NOON)).payload == '"kept"'
    assert (await ResponsesStore(database).get("k", "req-1")).holder == holder


async def test_a_new_minute_clears_the_old_ones_away(database):
    """Of its own key; days and sessions stay."""
    books = BooksStore(database)
    for charge in (minute(9, name="2026-01-01T11:59"), minute(9, key="other"), day(9), session()):
        await books.open([charge], 0)
    await books.open([minute(9)], 0)
    kept = [("k", "2026-01-01T11:59"), ("k", "2026-01-01T12:00"), ("other", "2026-01-01T12:00")]
    counts = [(await books.totals(*place, kind="key_minute")).requests for place in kept]
    assert counts == [0, 1, 1]
    assert (await books.totals("k", "2026-01-01", kind="key_day")).requests == 1
    assert (await books.totals("k", "s")).requests == 1
