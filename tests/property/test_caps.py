"""However calls overlap, a cap is exceeded by one call at most."""

import asyncio
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.samples import receipt

from turnout.core.govern.closing import Charge, ChargeKind, Closing
from turnout.core.money import Micros
from turnout.core.policies import SessionCaps, SessionTotals
from turnout.store.books import BooksStore
from turnout.store.database import open_database
from turnout.testing.books import MemoryBooks

PROGRAM = Path(__file__).with_name("capped.py")
AMOUNTS = st.integers(0, 100)
CALLS = st.lists(st.tuples(AMOUNTS, AMOUNTS), min_size=1, max_size=40)


async def run(books, charges, calls):
    """Make all calls at once, each costing at most what it reserves; return what they spent."""
    ids = iter(range(len(calls)))

    async def call(worst, actual):
        place = await books.open(charges, Micros(worst))
        if not place.granted:
            return None
        name = f"req-{next(ids)}"
        await asyncio.sleep(0)
        closing = Closing(receipt(name), tuple(charges), Micros(worst), Micros(min(worst, actual)))
        await books.close(closing)
        return min(worst, actual)

    spent = await asyncio.gather(*(call(*one) for one in calls))
    return [one for one in spent if one is not None]


@settings(max_examples=30, deadline=None)
@given(CALLS, st.integers(0, 300), st.integers(0, 30))
def test_parallel_calls_exceed_no_cap_by_more_than_one(tmp_path_factory, calls, spend, requests):
    """Of sessions, days and minutes; the totals are what was spent, to the micro-dollar."""
    charges = [
        Charge("session", "k", "s", SessionCaps(requests, Micros(spend))),
        Charge("key_minute", "k", "m", SessionCaps(max_requests=requests + 1)),
        Charge("key_day", "k", "d", SessionCaps(max_spend=Micros(spend + 10))),
    ]

    async def both():
        path = tmp_path_factory.mktemp("caps") / "turnout.db"
        async with open_database(path, durability="normal") as database:
            for books in (MemoryBooks(), BooksStore(database)):
                spent = await run(books, charges, calls)
                assert len(spent) <= requests
                dearest = max((worst for worst, _ in calls), default=0)
                assert sum(spent) < spend + dearest or not spent
                expected = SessionTotals(len(spent), Micros(sum(spent)))
                for charge in charges:
                    kind: ChargeKind = charge.kind
                    assert await books.totals("k", charge.name, kind=kind) == expected

    asyncio.run(both())


@pytest.mark.parametrize(
    ("worst", "actual", "requests", "spend", "granted"),
    [
        (10, 10, 10**6, 1_000, 100),
        (30, 30, 10**6, 1_000, 34),
        (0, 0, 77, 10**9, 77),
    ],
)
async def test_two_processes_on_one_file_exceed_no_cap(
    tmp_path, worst, actual, requests, spend, granted
):
    """They share nothing but the file."""
    path = tmp_path / "turnout.db"
    async with open_database(path):
        pass
    numbers = (200, worst, actual, requests, spend)
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            str(PROGRAM),
            str(path),
            name,
            *map(str, numbers),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=PROGRAM.parents[2],
            env={"PYTHONPATH": str(PROGRAM.parents[2])},
        )
        for name in ("one", "two")
    ]
    for process in processes:
        await process.stdout.readline()
    said = await asyncio.gather(*(process.communicate(b"\n") for process in processes))
    assert sum(int(out) for out, _ in said) == granted
    async with open_database(path) as database:
        totals = await BooksStore(database).totals("k", "s")
    assert totals == SessionTotals(granted, Micros(granted * actual))


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_cancelled_calls_count_on_nothing(tmp_path_factory, data):
    """At whatever moment a client goes away while its request is counted."""
    moments = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=20))
    charge = Charge("session", "k", "s", SessionCaps(max_requests=100))

    async def main():
        path = tmp_path_factory.mktemp("caps") / "turnout.db"
        async with open_database(path, durability="normal") as database:
            books = BooksStore(database)
            opening = [asyncio.create_task(books.open([charge], Micros(7))) for _ in moments]
            for turn in range(8):
                for moment, task in zip(moments, opening, strict=True):
                    if moment == turn:
                        task.cancel()
                await asyncio.sleep(0.0002)
            ended = await asyncio.gather(*opening, return_exceptions=True)
            await books.finish()
            heard = sum(not isinstance(one, BaseException) for one in ended)
            assert await books.totals("k", "s") == SessionTotals(heard, Micros(7 * heard))

    asyncio.run(main())
