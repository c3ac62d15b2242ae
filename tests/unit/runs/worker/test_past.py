"""How far a run is, read from its record."""

from datetime import UTC, datetime, timedelta

from turnout.core.events import Entry, Event, RunResumed, StepStarted, ToolCallDone
from turnout.core.ids import RunId, ToolCallId
from turnout.core.tools import ToolResult
from turnout.runs.worker.past import past_of

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)


def entries(*events: tuple[float, Event]) -> list[Entry]:
    """Return a record of events, each so many seconds after the beginning."""
    return [
        Entry(RunId("run-1"), number, BEGUN + timedelta(seconds=after), event)
        for number, (after, event) in enumerate(events, 1)
    ]


def test_a_night_without_a_worker_does_not_count_against_the_limit_of_time() -> None:
    """A run that is taken up again goes on with the time that it had left."""
    done = ToolCallDone(2, ToolResult(ToolCallId("c"), "ok"), 0.1)
    past = past_of(
        entries(
            (0, StepStarted(1, "act", "latency")),
            (20, StepStarted(2, "act", "latency")),
            (28_820, RunResumed(2, "b")),
            (28_850, StepStarted(3, "act", "latency")),
            (28_860, done),
            (90_000, RunResumed(3, "c")),
        )
    )
    assert past.seconds == 30.0
    assert past.segments == 3
