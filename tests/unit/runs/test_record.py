"""Writing a record, and reading those of past runs."""

import pytest
from tests.unit.runs.parts import Room
from tests.unit.runs.test_summary import STARTED

from turnout.core.events import Entry, Notice
from turnout.core.ids import RunId
from turnout.errors import NotFoundError, StaleEpochError
from turnout.runs.record import Recorder, RunRecords
from turnout.testing.clock import FrozenClock
from turnout.testing.stores import MemoryRecordStore


async def test_an_entry_is_shown_once_it_is_durable() -> None:
    """A worker that was replaced shows nothing more."""
    store, shown = MemoryRecordStore(), list[Entry]()
    recorder = Recorder(store, RunId("run-1"), FrozenClock(), shown.append)
    await recorder.begin(STARTED)
    await store.take_over(RunId("run-1"))
    with pytest.raises(StaleEpochError):
        await recorder.add(Notice("late"))
    assert [entry.event for entry in shown] == [STARTED]
    assert shown == list(await store.entries(RunId("run-1")))


async def test_past_runs_are_found_by_the_start_of_their_id_or_as_the_newest() -> None:
    """Both ways lead to the same result as the run itself returned."""
    room = Room()
    result = await room.run()
    records = RunRecords(room.store)
    assert await records.result(result.run_id[:8]) == result
    assert await records.result(None) == result
    assert [row.run_id for row in await records.rows()] == [result.run_id]


async def test_no_run_is_no_result() -> None:
    """The error says what to do."""
    records = RunRecords(MemoryRecordStore())
    with pytest.raises(NotFoundError, match="turnout run"):
        await records.result(None)
    with pytest.raises(NotFoundError):
        await records.result("run-0")
