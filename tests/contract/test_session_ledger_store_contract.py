import asyncio

import pytest

from turnout.core.policies import SessionCaps, SessionTotals
from turnout.errors import NotFoundError, StoreError
from turnout.store.sessions import SessionLedgerStore
from turnout.testing.stores import MemorySessionLedgerStore

FREE = SessionCaps()


@pytest.fixture(params=["memory", "sql"])
def ledger(request, database):
    """Return an empty one of each kind."""
    return MemorySessionLedgerStore() if request.param == "memory" else SessionLedgerStore(database)


async def test_an_unknown_session_has_used_nothing(ledger):
    """No row is needed to ask."""
    assert await ledger.totals("k", "s") == SessionTotals(0, 0)


async def test_a_reservation_counts_before_it_is_settled(ledger):
    """With its worst case, and tells the totals before itself."""
    first = await ledger.reserve("k", "s", "req-1", 100, FREE)
    second = await ledger.reserve("k", "s", "req-2", 50, FREE)
    assert (first.granted, first.totals) == (True, SessionTotals(0, 0))
    assert (second.granted, second.totals) == (True, SessionTotals(1, 100))
    assert await ledger.totals("k", "s") == SessionTotals(2, 150)


async def test_settling_replaces_the_worst_case(ledger):
    """The request stays counted; settling again corrects the amount."""
    await ledger.reserve("k", "s", "req-1", 100, FREE)
    await ledger.settle("req-1", 30)
    await ledger.settle("req-1", 20)
    assert await ledger.totals("k", "s") == SessionTotals(1, 20)


async def test_a_request_over_the_request_cap_is_refused(ledger):
    """It is named, and nothing is counted."""
    caps = SessionCaps(max_requests=1)
    await ledger.reserve("k", "s", "req-1", 1, caps)
    refused = await ledger.reserve("k", "s", "req-2", 1, caps)
    assert (refused.granted, refused.exceeded) == (False, "requests")
    assert await ledger.totals("k", "s") == SessionTotals(1, 1)


async def test_a_request_over_the_spend_cap_is_refused(ledger):
    """Reserved money counts as spent; a request that only reaches past the cap is let through."""
    caps = SessionCaps(max_spend=100)
    assert (await ledger.reserve("k", "s", "req-1", 99, caps)).granted
    assert (await ledger.reserve("k", "s", "req-2", 99, caps)).granted
    assert (await ledger.reserve("k", "s", "req-3", 1, caps)).exceeded == "spend"


async def test_settling_for_less_makes_room(ledger):
    """What was reserved and not spent is free again."""
    caps = SessionCaps(max_spend=100)
    await ledger.reserve("k", "s", "req-1", 100, caps)
    assert not (await ledger.reserve("k", "s", "req-2", 1, caps)).granted
    await ledger.settle("req-1", 1)
    assert (await ledger.reserve("k", "s", "req-2", 1, caps)).granted


async def test_fifty_requests_at_once_pass_a_spend_cap_by_one_at_most(ledger):
    """The sum of what was granted is below the cap until the last one."""
    caps = SessionCaps(max_spend=1_000)
    asked = (ledger.reserve("k", "s", f"req-{n}", 300, caps) for n in range(50))
    assert sum(one.granted for one in await asyncio.gather(*asked)) == 4


async def test_fifty_requests_at_once_keep_a_request_cap_exactly(ledger):
    """No two of them see the same count."""
    caps = SessionCaps(max_requests=7)
    asked = (ledger.reserve("k", "s", f"req-{n}", 0, caps) for n in range(50))
    granted = [one for one in await asyncio.gather(*asked) if one.granted]
    assert sorted(one.totals.requests for one in granted) == list(range(7))


async def test_scopes_do_not_share_a_session(ledger):
    """One key cannot use up another key's session of the same name."""
    caps = SessionCaps(max_requests=1)
    await ledger.reserve("mine", "s", "req-1", 5, caps)
    assert (await ledger.reserve("yours", "s", "req-2", 5, caps)).granted


async def test_a_request_reserves_once(ledger):
    """A second reservation under its id would be settled as the first."""
    await ledger.reserve("k", "s", "req-1", 5, FREE)
    with pytest.raises(StoreError, match="already has a reservation"):
        await ledger.reserve("k", "s", "req-1", 5, FREE)
    assert await ledger.totals("k", "s") == SessionTotals(1, 5)


async def test_settling_what_was_never_reserved_is_an_error(ledger):
    """Money must not vanish in silence."""
    with pytest.raises(NotFoundError):
        await ledger.settle("req-0", 5)


async def test_sums_beyond_32_bits_stay_exact(ledger):
    """Four thousand dollars are more micro-USD than a 32-bit number holds."""
    await ledger.reserve("k", "s", "req-1", 2**40, FREE)
    await ledger.reserve("k", "s", "req-2", 2**40, FREE)
    assert (await ledger.totals("k", "s")).spend == 2**41
