"""What requests leave in the inventory, and what somebody is told of."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.samples import NOON, receipt

from turnout.core.govern.happenings import deployment_unhealthy
from turnout.gateway.notices.notices import Notices
from turnout.testing.clock import FrozenClock
from turnout.testing.memory.noticed import MemoryNotices

PLAIN = replace(
    receipt(),
    policy="default",
    tools_declared=("read", "run"),
    tools_called=("run",),
    tools_outside=(),
)
OUTSIDE = replace(PLAIN, tools_outside=("run",))
REFUSED = replace(
    OUTSIDE, status="refused", error_code="tool_not_allowed", tools_called=(), routing=None
)


@pytest.fixture
def store():
    """Return where it is written."""
    return MemoryNotices()


@pytest.fixture
def notices(store):
    """Return what notices; it writes when it is told to."""
    return Notices(store, FrozenClock())


async def kinds(store):
    """Return what happened, by kind and subject, oldest first."""
    newest = await store.newest(limit=99)
    return [(one.kind, one.subject) for one in reversed(newest)]


async def test_every_declared_tool_is_in_the_inventory(store, notices):
    """With the number of requests that declared it, and of those in which it was called."""
    notices.saw(PLAIN)
    notices.saw(replace(PLAIN, at=NOON + timedelta(seconds=1), tools_called=()))
    await notices.write()
    found = {one.tool: one for one in await store.inventory(limit=9)}
    assert {(t, o.requests, o.calls) for t, o in found.items()} == {("read", 2, 0), ("run", 2, 1)}
    assert (found["run"].first_at, found["run"].last_at) == (NOON, NOON + timedelta(seconds=1))
    assert (found["run"].project, found["run"].key) == ("default", "k")


async def test_a_tool_of_a_connection_is_seen_when_it_is_called(store, notices):
    """What is declared is all of its server's."""
    notices.saw(
        replace(PLAIN, tools_declared=("mcp:git/*",), tools_called=("mcp:git/log", "made_up"))
    )
    await notices.write()
    found = {(one.tool, one.requests, one.calls) for one in await store.inventory(limit=9)}
    assert found == {("mcp:git/*", 1, 0), ("mcp:git/log", 0, 1)}


async def test_a_tool_that_is_new_to_a_project_is_told_once(store, notices):
    """Not again for another key of it; but for another project."""
    notices.saw(PLAIN)
    await notices.write()
    notices.saw(replace(PLAIN, key="l", request_id="req-2"))
    notices.saw(replace(PLAIN, project="q"))
    await notices.write()
    told = await store.newest(limit=99, kinds=["tool.first_seen"])
    assert sorted((one.project, one.subject) for one in told) == [
        ("default", "read"),
        ("default", "run"),
        ("q", "read"),
        ("q", "run"),
    ]
    assert {one.request_id for one in told if one.project == "default"} == {"req-1"}


async def test_a_tool_outside_a_dry_run_list_is_counted_and_told_once_a_day(store, notices):
    """By key, so that its owner can be asked."""
    for hours in (0, 1, 12):
        notices.saw(replace(OUTSIDE, at=NOON + timedelta(hours=hours)))
        await notices.write()
    told = await store.newest(limit=99, kinds=["tool.outside_list"])
    assert [(one.key, one.subject, one.policy) for one in told] == [("k", "run", "default")] * 2
    assert [(o.day, o.served, o.refused) for o in store.outside] == [
        ("2026-01-01", 1, 0),
        ("2026-01-01", 1, 0),
        ("2026-01-02", 1, 0),
    ]


async def test_a_refused_tool_is_counted_apart(store, notices):
    """It was not served, and that is what is told."""
    notices.saw(REFUSED)
    await notices.write()
    assert [(o.tool, o.served, o.refused) for o in store.outside] == [("run", 0, 1)]
    assert ("tool.refused", "run") in await kinds(store)


async def test_a_request_refused_for_another_reason_says_nothing_of_the_list(store, notices):
    """Its tools were declared, and nobody was served."""
    notices.saw(replace(OUTSIDE, status="refused", error_code="session_spend_cap", http_status=402))
    await notices.write()
    assert store.outside == []
    assert {one.tool for one in await store.inventory(limit=9)} == {"read", "run"}


async def test_a_capped_session_is_told_once_for_each_cap(store, notices):
    """However often it goes on asking."""
    for code in ("session_request_cap", "session_request_cap", "session_spend_cap"):
        notices.saw(replace(PLAIN, status="refused", error_code=code, tools_declared=()))
        await notices.write()
    told = await store.newest(limit=9)
    assert [one.text for one in told] == [
        "Session s of key k has reached its cap on spend.",
        "Session s of key k has reached its cap on requests.",
    ]


async def test_what_happens_outside_of_requests_is_written_too(store, notices):
    """An ill deployment."""
    notices.happened(deployment_unhealthy(NOON, "x/m", "5 failures in a row"))
    await notices.write()
    assert await kinds(store) == [("deployment.unhealthy", "x/m")]


async def test_what_the_store_does_not_take_is_written_later(store, notices):
    """With what came meanwhile, nothing twice."""
    store.broken = True
    notices.saw(OUTSIDE)
    await notices.write()
    notices.saw(OUTSIDE)
    store.broken = False
    await notices.write()
    await notices.write()
    assert [(o.tool, o.served) for o in store.outside] == [("run", 2)]
    assert {(s.tool, s.requests) for s in store.seen} == {("read", 2), ("run", 2)}


async def test_a_request_without_tools_leaves_nothing(store, notices):
    """Nor does one that could not be read."""
    notices.saw(replace(PLAIN, tools_declared=()))
    notices.saw(
        replace(PLAIN, key="", tools_declared=(), policy="", status="refused", session=None)
    )
    await notices.write()
    assert (store.seen, store.outside, store.happenings) == ([], [], {})


async def test_memory_is_bounded_whatever_clients_declare(store, notices):
    """Names are cut, and so is the number of different marks between two writes."""
    for number in range(5_000):
        notices.saw(replace(PLAIN, tools_declared=(f"{number:04}" * 100,)))
    await notices.write()
    assert len(store.seen) == 2_000
    assert max(len(one.tool) for one in store.seen) == 256


async def test_whoever_waits_is_told_only_of_news(store):
    """A webhook's sender need not look in vain."""
    woken = []
    notices = Notices(store, FrozenClock(), on_new=lambda: woken.append(1))
    for _ in range(3):
        notices.saw(PLAIN)
        await notices.write()
    assert woken == [1]


async def test_it_writes_by_itself_and_the_rest_when_it_is_closed(store):
    """Nothing that was noted is forgotten at an ordinary end."""
    written = asyncio.Event()
    notices = Notices(store, FrozenClock(), on_new=written.set)
    notices.start()
    notices.saw(PLAIN)
    await asyncio.wait_for(written.wait(), 5)
    notices.saw(replace(PLAIN, key="l"))
    await notices.close()
    assert {one.key for one in store.seen} == {"k", "l"}
