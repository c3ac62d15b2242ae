import asyncio
from datetime import timedelta

import pytest
from tests.samples import ENDED, JUDGED, NOON, STARTED, STRANGE

from turnout.core.events import Entry, Notice, PatchMade
from turnout.core.runs import FileChange, Patch
from turnout.errors import NotFoundError, StaleEpochError, StoreError
from turnout.store.record import RecordStore
from turnout.testing.stores import MemoryRecordStore

LATER = NOON + timedelta(microseconds=1)


@pytest.fixture(params=["memory", "sql"])
def record(request, database):
    """Return an empty one of each kind."""
    return MemoryRecordStore() if request.param == "memory" else RecordStore(database)


async def test_a_record_reads_back_in_order_without_gaps(record):
    """Every entry as it was returned, with its moment."""
    assert await record.begin("run-1", STARTED, NOON) == 1
    second = await record.append("run-1", 1, Notice(STRANGE), LATER)
    patch = Patch(b"+\xff\0\n", (FileChange("a", "added", None, None),))
    third = await record.append("run-1", 1, PatchMade(patch), LATER)
    assert second == Entry("run-1", 2, LATER, Notice(STRANGE))
    assert await record.entries("run-1") == (Entry("run-1", 1, NOON, STARTED), second, third)


async def test_a_reader_goes_on_from_where_it_was(record):
    """`after` is the last entry that it has."""
    await record.begin("run-1", STARTED, NOON)
    second = await record.append("run-1", 1, Notice("x"), NOON)
    assert await record.entries("run-1", after=1) == (second,)
    assert await record.entries("run-1", after=2) == ()


async def test_appends_at_once_get_each_its_own_number(record):
    """No gap, no double."""
    await record.begin("run-1", STARTED, NOON)
    many = (record.append("run-1", 1, Notice(str(n)), NOON) for n in range(40))
    assert sorted(entry.seq for entry in await asyncio.gather(*many)) == list(range(2, 42))
    assert [entry.seq for entry in await record.entries("run-1")] == list(range(1, 42))


async def test_a_worker_that_was_replaced_can_write_nothing(record):
    """Not even by a claim to a later epoch; the new worker goes on without a gap."""
    await record.begin("run-1", STARTED, NOON)
    assert await record.take_over("run-1") == 2
    for epoch in (1, 3):
        with pytest.raises(StaleEpochError):
            await record.append("run-1", epoch, Notice("zombie"), NOON)
    assert (await record.append("run-1", 2, Notice("new"), NOON)).seq == 2


async def test_the_line_of_a_run_follows_its_events(record):
    """Verdict and outcome appear with the events that bring them."""
    await record.begin("run-1", STARTED, NOON)
    row = await record.row("run-1")
    assert (row.prompt, row.repository, row.base_commit) == (STRANGE, "/repo", "c" * 40)
    assert (row.started_at, row.ended_at, row.outcome, row.verdict) == (NOON, None, None, None)
    await record.append("run-1", 1, JUDGED, NOON)
    await record.append("run-1", 1, ENDED, LATER)
    row = await record.row("run-1")
    assert (row.ended_at, row.outcome, row.verdict, row.epoch) == (LATER, "answered", "resolved", 1)


async def test_nothing_follows_the_end_of_a_run(record):
    """Its record is closed."""
    await record.begin("run-1", STARTED, NOON)
    await record.append("run-1", 1, ENDED, NOON)
    with pytest.raises(StoreError, match="has ended"):
        await record.append("run-1", 1, Notice("late"), NOON)


async def test_a_record_begins_once_and_with_the_start(record):
    """Anything else would make a list without prompts."""
    with pytest.raises(StoreError, match="run_started"):
        await record.begin("run-1", ENDED, NOON)
    await record.begin("run-1", STARTED, NOON)
    with pytest.raises(StoreError, match="already has a record"):
        await record.begin("run-1", STARTED, NOON)


async def test_the_newest_runs_come_first(record):
    """Up to the limit, also where they began in the same moment."""
    for name in ("run-a", "run-c", "run-b"):
        await record.begin(name, STARTED, NOON)
    assert [row.run_id for row in await record.rows(limit=2)] == ["run-b", "run-c"]


async def test_what_is_not_there_is_not_found(record):
    """By every way of asking."""
    for asked in (
        record.row("run-0"),
        record.entries("run-0"),
        record.take_over("run-0"),
        record.append("run-0", 1, ENDED, NOON),
    ):
        with pytest.raises(NotFoundError):
            await asked


async def test_a_run_is_found_by_the_start_of_its_id(record):
    """By no pattern, and only where one run is meant."""
    await record.begin("run-ab", STARTED, NOON)
    await record.begin("run-ac", STARTED, NOON)
    assert await record.find("run-ab") == "run-ab"
    for unclear in ("run-", "run-b", "RUN-AB", "run%ab", "run_ab", STRANGE):
        with pytest.raises(NotFoundError):
            await record.find(unclear)
