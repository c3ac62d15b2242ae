"""The inventory of tools and what happened, on every database and in memory."""

import asyncio
from dataclasses import replace
from datetime import date, timedelta

import pytest
from sqlalchemy import insert
from tests import databases
from tests.samples import NOON, STRANGE, receipt

from turnout.core.govern.happenings import (
    deployment_unhealthy,
    policy_changed,
    session_capped,
    tool_first_seen,
)
from turnout.core.govern.toolwatch import OutsideTool, PolicyDay, SeenTool, ToolHit
from turnout.store.happenings import HappeningsStore
from turnout.store.notices import NoticesStore
from turnout.store.receipts import receipt_row
from turnout.store.schema import receipts
from turnout.store.tools import ToolsStore
from turnout.testing.memory.noticed import MemoryNotices

LATER = NOON + timedelta(hours=1)
SHELL = SeenTool("p", "k", "shell", NOON, NOON, requests=1, calls=0)
HIT = OutsideTool("default", "2026-01-01", "k", "shell", served=2, refused=0, last_at=NOON)


@pytest.fixture(params=["memory", *databases.KINDS])
async def stores(request, tmp_path):
    """Hand out what writes, what reads tools and what reads happenings, of each kind."""
    if request.param == "memory":
        memory = MemoryNotices()
        yield memory, memory, memory
        return
    with databases.tables_of(request.param, request, tmp_path) as url:
        async with databases.opened(url) as database:
            yield NoticesStore(database), ToolsStore(database), HappeningsStore(database)


async def test_a_tool_is_one_entry_for_each_key(stores):
    """First seen stays, last seen moves, counts add up."""
    write, tools, _ = stores
    other = replace(SHELL, key="l", first_at=LATER, last_at=LATER)
    await write.write([SHELL, other], [], [])
    again = replace(SHELL, first_at=LATER, last_at=LATER, requests=3, calls=2)
    await write.write([again], [], [])
    merged = replace(SHELL, last_at=LATER, requests=4, calls=2)
    assert await tools.inventory(limit=9) == (other, merged)
    assert await tools.inventory(limit=9, key="k") == (merged,)
    assert await tools.inventory(limit=9, project="q") == ()
    assert await tools.inventory(limit=1) == (other,)


async def test_a_late_writer_does_not_turn_last_seen_back(stores):
    """Two processes write in any order."""
    write, tools, _ = stores
    await write.write([replace(SHELL, last_at=LATER)], [], [])
    await write.write([SHELL], [], [])
    (found,) = await tools.inventory(limit=9)
    assert (found.last_at, found.requests) == (LATER, 2)


async def test_names_may_hold_any_character(stores):
    """Clients choose them."""
    write, tools, _ = stores
    strange = replace(SHELL, tool=STRANGE, key=STRANGE, project=STRANGE)
    await write.write([strange], [], [])
    assert await tools.inventory(limit=9, key=STRANGE, project=STRANGE) == (strange,)


async def test_tools_outside_a_list_add_up_by_tool_and_key(stores):
    """Over the days of the report and no others; those that were sent most come first."""
    write, tools, _ = stores
    before = replace(HIT, day="2025-12-31")
    next_day = replace(HIT, day="2026-01-02", served=0, refused=5, last_at=LATER)
    other = replace(HIT, tool="rm", served=1)
    elsewhere = replace(HIT, policy="else")
    await write.write([], [before, HIT, other, elsewhere], [])
    await write.write([], [next_day, other], [])
    report = await tools.report("default", since=date(2026, 1, 1), today=date(2026, 1, 2))
    assert report.hits == (
        ToolHit("k", "shell", 2, 5, date(2026, 1, 1), LATER),
        ToolHit("k", "rm", 2, 0, date(2026, 1, 1), NOON),
    )


async def test_what_happened_is_there_once(stores):
    """However often, and by however many, it was noticed."""
    write, _, happenings = stores
    seen = tool_first_seen(receipt(), "shell")
    assert await write.write([], [], [seen]) == 1
    again = tool_first_seen(replace(receipt("req-2"), at=LATER), "shell")
    assert await write.write([], [], [again]) == 0
    assert await happenings.newest(limit=9) == (seen,)


async def test_what_happened_can_be_asked_for_by_kind_key_and_time(stores):
    """The newest first."""
    write, _, happenings = stores
    capped = session_capped(replace(receipt(key="l"), error_code="session_spend_cap"))
    ill = deployment_unhealthy(LATER, "x/m", "5 failures in a row")
    changed = policy_changed(LATER, "default", 3, author="me", note="")
    await write.write([], [], [capped, ill, changed])
    assert await happenings.newest(limit=2) == (changed, ill)
    assert await happenings.newest(limit=9, key="l") == (capped,)
    assert await happenings.newest(limit=9, since=LATER) == (changed, ill)
    assert await happenings.newest(limit=9, kinds=["session.capped", "policy.changed"]) == (
        changed,
        capped,
    )


async def test_a_key_that_makes_names_up_fills_no_disk(any_database):
    """Beyond its most tools neither they nor what happened with them are kept."""
    write, tools = NoticesStore(any_database, most_tools=3), ToolsStore(any_database)
    many = [replace(SHELL, tool=f"t{n}") for n in range(5)]
    told = [tool_first_seen(receipt(), one.tool) for one in many]
    assert await write.write(many, [replace(HIT, tool="t4")], told) == 3
    assert await write.write([*many, replace(SHELL, key="l")], [], told) == 0
    kept = {(one.key, one.tool): one.requests for one in await tools.inventory(limit=9)}
    assert kept == {("k", "t0"): 2, ("k", "t1"): 2, ("k", "t2"): 2, ("l", "shell"): 1}
    assert (
        await tools.report("default", since=date(2026, 1, 1), today=date(2026, 1, 1))
    ).hits == ()


async def test_two_processes_that_notice_the_same_lose_no_count(any_database):
    """And tell of it once."""
    stores = [NoticesStore(any_database), NoticesStore(any_database)]
    seen = [replace(SHELL, tool=f"t{n}") for n in range(20)]
    told = [tool_first_seen(receipt(), one.tool) for one in seen]
    new = await asyncio.gather(
        *(stores[n % 2].write(seen if n % 3 else seen[::-1], [HIT], told) for n in range(10))
    )
    assert sum(new) == 20
    tools = ToolsStore(any_database)
    assert {one.requests for one in await tools.inventory(limit=99)} == {10}
    (hit,) = (await tools.report("default", since=date(2026, 1, 1), today=date(2026, 1, 1))).hits
    assert hit.served == 20


async def test_a_reports_days_come_from_the_receipts(any_database):
    """Requests with tools under that policy, by day of UTC; days without any are left out."""
    made = [
        replace(receipt("req-1"), policy="default", at=NOON),
        replace(receipt("req-2"), policy="default", at=NOON, tools_outside=()),
        replace(receipt("req-3"), policy="default", at=NOON + timedelta(days=2), tools_outside=()),
        replace(receipt("req-4"), policy="default", at=NOON + timedelta(days=1), tools_declared=()),
        replace(receipt("req-5"), policy="else"),
        replace(receipt("req-6"), policy="default", at=NOON - timedelta(days=1)),
        replace(receipt("req-7"), policy="default", at=NOON + timedelta(days=3)),
    ]
    rows = [{**receipt_row(one), "payload": ""} for one in made]
    await any_database.write(lambda connection: connection.execute(insert(receipts), rows))
    report = await ToolsStore(any_database).report(
        "default", since=date(2026, 1, 1), today=date(2026, 1, 3)
    )
    assert report.days == (
        PolicyDay(date(2026, 1, 1), requests=2, outside=1),
        PolicyDay(date(2026, 1, 3), requests=1, outside=0),
    )
