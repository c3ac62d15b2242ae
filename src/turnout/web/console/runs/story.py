"""A run's record told as rows, in the order of what happened; a call and its answer are one row.

Rows hold little text, so that many runs can be kept and a page of five hundred steps is light:
what was said whole is read from the record when somebody opens a row.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from turnout.core.events import (
    ApprovalAsked,
    ApprovalGiven,
    Entry,
    ModelCallDone,
    ModelCallFailed,
    ModelCallIntended,
    RunEnded,
    ToolCallDone,
    ToolCallIntended,
)
from turnout.core.ids import ToolCallId
from turnout.runs.summary import RunResult, Summary
from turnout.web.console.runs.words import Row, call_answered, call_failed, row_of, tool_answered

__all__ = ["Story"]


class Story:
    """Takes entries in order; everything it tells is as of the newest of them."""

    def __init__(self) -> None:
        self.last_seq = 0
        """Place of the newest entry; 0 before the first."""
        self.weight = 0
        """About how many characters it holds."""
        self._summary = Summary()
        self._rows: list[Row] = []
        self._calls: dict[str, int] = {}
        """Places of rows of model calls without an answer, by idempotency key."""
        self._asked_at: datetime | None = None
        """When it began to wait for a person; None where it does not."""
        self._waited = 0.0
        self._refused: set[ToolCallId] = set()
        """Calls that a person has refused and that were not answered yet."""
        self._tools: dict[ToolCallId, deque[int]] = {}

    def add(self, entry: Entry) -> None:
        """Take the next entry in; one that was taken in before is passed over."""
        if entry.seq <= self.last_seq:
            return
        self.last_seq = entry.seq
        self._summary.add(entry)
        event = entry.event
        self._wait(entry)
        match event:
            case ModelCallDone() | ModelCallFailed():
                self._answer_call(entry, event)
            case ToolCallDone(result=result):
                self.weight += len(result.content) + len(result.full)
                self._answer_tool(entry, event)
            case _:
                self._open(entry)
        if isinstance(event, RunEnded):
            self._close(entry.seq)

    @property
    def result(self) -> RunResult | None:
        """What the record amounts to; None while nobody has begun the run."""
        return self._summary.result

    @property
    def rows(self) -> Sequence[Row]:
        """All rows, oldest first."""
        return self._rows

    def waited(self, now: datetime) -> float:
        """Return for how many seconds it has waited for people."""
        still = 0.0 if self._asked_at is None else (now - self._asked_at).total_seconds()
        return self._waited + max(0.0, still)

    def since(self, seen: int) -> Iterator[Row]:
        """Yield the rows that an entry after `seen` has made or changed, oldest first."""
        return (row for row in self._rows if row.changed > seen)

    def _wait(self, entry: Entry) -> None:
        match entry.event:
            case ApprovalAsked():
                self._asked_at = entry.at
            case ApprovalGiven() | RunEnded() as event if self._asked_at is not None:
                self._waited = self.waited(entry.at)
                self._asked_at = None
                if isinstance(event, ApprovalGiven) and not event.allowed:
                    self._refused.add(event.call_id)
            case _:
                pass

    def _open(self, entry: Entry) -> None:
        row = row_of(entry)
        if row is None:
            return
        place = len(self._rows)
        match entry.event:
            case ModelCallIntended(idempotency_key=key):
                earlier = self._calls.setdefault(key, place)
                if earlier != place:
                    # It is sent again, by whoever goes on with the run.
                    return
            case ToolCallIntended(call=call):
                self._tools.setdefault(call.id, deque()).append(place)
            case _:
                pass
        self.weight += 200 + len(row.note)
        self._rows.append(row)

    def _answer_call(self, entry: Entry, event: ModelCallDone | ModelCallFailed) -> None:
        place = self._calls.pop(event.idempotency_key, None)
        row = None if place is None else self._rows[place]
        if isinstance(event, ModelCallDone):
            self.weight += len(event.message.content) + len(event.message.wire)
            told = call_answered(entry, event, row)
        else:
            told = call_failed(entry, event, row)
        self._tell(told, place)

    def _answer_tool(self, entry: Entry, event: ToolCallDone) -> None:
        call = event.result.call_id
        places = self._tools.get(call)
        place = places.popleft() if places else None
        row, refused = None if place is None else self._rows[place], call in self._refused
        self._refused.discard(call)
        self._tell(tool_answered(entry, event, row, refused=refused), place)

    def _tell(self, row: Row, place: int | None) -> None:
        if place is None:
            self._rows.append(row)
        else:
            self._rows[place] = row

    def _close(self, seq: int) -> None:
        """Leave nothing under way: what had no end by now never gets one."""
        for place, row in enumerate(self._rows):
            if row.open:
                marks = (*row.marks, "no answer")
                self._rows[place] = replace(row, open=False, marks=marks, changed=seq)
