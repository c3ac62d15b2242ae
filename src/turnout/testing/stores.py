"""Stores that keep everything in memory; they satisfy the same ports as those on a database."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from turnout.core.events import Entry, Event, RunEnded, RunStarted, VerdictGiven
from turnout.core.govern.closing import MadeCalls, StoredResponse
from turnout.core.govern.evidence import Observation, QualityResult, Rates, fold
from turnout.core.govern.revisions import PolicyRevision
from turnout.core.ids import RequestId, RunId, SessionId, ToolCallId
from turnout.core.receipts import Receipt
from turnout.core.runs import RunRow
from turnout.core.tasks import Task
from turnout.core.tools import Holder
from turnout.errors import ConflictError, NotFoundError, StaleEpochError, StoreError

__all__ = [
    "MemoryAffinityStore",
    "MemoryEvidenceStore",
    "MemoryPoliciesStore",
    "MemoryProbesStore",
    "MemoryReceiptsStore",
    "MemoryRecordStore",
    "MemoryResponsesStore",
]


class MemoryReceiptsStore:
    """Receipts by request."""

    def __init__(self) -> None:
        self.receipts: dict[RequestId, Receipt] = {}
        """In the order in which they were written."""

    async def add(self, receipt: Receipt) -> None:
        """Write a receipt; `StoreError` where the request has one."""
        there = self.receipts.get(receipt.request_id)
        if there is not None and there.status != "unknown":
            raise StoreError(f"Request {receipt.request_id} already has a receipt.")
        self.receipts[receipt.request_id] = receipt

    async def get(self, request_id: RequestId) -> Receipt | None:
        """Return a receipt; None where there is none."""
        return self.receipts.get(request_id)

    async def of_session(self, session: SessionId, *, key: str) -> Sequence[Receipt]:
        """Return a session's receipts of one key, oldest first."""
        found = (r for r in self.receipts.values() if r.session == session and r.key == key)
        return tuple(sorted(found, key=lambda receipt: receipt.at))


class MemoryAffinityStore:
    """The holder of each tool call, and the thoughts before it, within a scope."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, ToolCallId], MadeCalls] = {}

    async def remember(self, made: MadeCalls) -> None:
        """Note who made these calls; the last note about a call counts."""
        self._made.update(((made.scope, call), made) for call in made.calls)

    async def holder(self, scope: str, calls: Sequence[ToolCallId]) -> Holder | None:
        """Return the model that made the first known of these calls; None where none is known."""
        known = (self._made.get((scope, call)) for call in calls)
        return next((made.holder for made in known if made), None)

    async def reasoning(self, scope: str, calls: Sequence[ToolCallId]) -> Mapping[ToolCallId, str]:
        """Return what the model thought before each of these calls, where that was kept."""
        known = {call: self._made.get((scope, call)) for call in calls}
        return {call: made.reasoning for call, made in known.items() if made and made.reasoning}


class MemoryResponsesStore:
    """Stored responses, by scope and id."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, RequestId], tuple[StoredResponse, datetime]] = {}

    async def put(self, stored: StoredResponse, at: datetime) -> None:
        """Keep a response."""
        self.kept[stored.scope, stored.id] = stored, at

    async def get(self, scope: str, wanted: RequestId) -> StoredResponse | None:
        """Return a response; None where the scope has none of that id."""
        found = self.kept.get((scope, wanted))
        return None if found is None else found[0]

    async def delete(self, scope: str, wanted: RequestId) -> bool:
        """Forget a response; False where the scope has none of that id."""
        return self.kept.pop((scope, wanted), None) is not None

    async def forget(self, before: datetime) -> int:
        """Forget the responses of before that moment; return how many there were."""
        old = [place for place, (_, at) in self.kept.items() if at < before]
        for place in old:
            del self.kept[place]
        return len(old)


class MemoryEvidenceStore:
    """Rates by key, and what evaluations say of models."""

    def __init__(self) -> None:
        self._rates: dict[str, Rates] = {}
        self._qualities: tuple[QualityResult, ...] = ()

    async def rates(self, keys: Collection[str]) -> Mapping[str, Rates]:
        """Return what is kept of these deployments; those of which nothing is are left out."""
        return {key: self._rates[key] for key in keys if key in self._rates}

    async def merge_rates(self, seen: Mapping[str, Sequence[Observation]]) -> Mapping[str, Rates]:
        """Add observations to what is kept, and return what is kept of these deployments now."""
        merged = {key: fold(self._rates.get(key, Rates()), rows) for key, rows in seen.items()}
        self._rates |= merged
        return merged

    def know(self, *results: QualityResult) -> None:
        """Let this be what evaluations say."""
        self._qualities = results

    async def qualities(self) -> Sequence[QualityResult]:
        """Return what counts of the evaluations that are applied."""
        return self._qualities


class MemoryProbesStore:
    """One text per key."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    async def put(self, key: str, text: str) -> None:
        """Keep a probe's result, in place of an earlier one."""
        self._texts[key] = text

    async def get(self, key: str) -> str | None:
        """Return the result kept under a key; None where there is none."""
        return self._texts.get(key)


class MemoryPoliciesStore:
    """Revisions by policy."""

    def __init__(self) -> None:
        self._revisions: dict[str, list[PolicyRevision]] = {}

    async def add(self, revisions: Sequence[PolicyRevision]) -> None:
        """Write revisions, all or none.

        `ConflictError` where one does not follow the newest of its policy.
        """
        kept = {name: list(of_one) for name, of_one in self._revisions.items()}
        for revision in revisions:
            of_one = kept.setdefault(revision.policy.name, [])
            if revision.policy.revision != len(of_one) + 1:
                raise ConflictError(f"The policy {revision.policy.name!r} was changed meanwhile.")
            of_one.append(revision)
        self._revisions = kept

    async def newest(self) -> Sequence[PolicyRevision]:
        """Return the newest revision of every policy, by name."""
        return tuple(of_one[-1] for _, of_one in sorted(self._revisions.items()))

    async def history(self, name: str, *, limit: int = 100) -> Sequence[PolicyRevision]:
        """Return a policy's revisions, newest first; empty where there is none."""
        return tuple(reversed(self._revisions.get(name, ())))[:limit]

    async def get(self, name: str, number: int) -> PolicyRevision | None:
        """Return one revision; None where there is none."""
        of_one = self._revisions.get(name, ())
        return of_one[number - 1] if 0 < number <= len(of_one) else None

    async def count(self) -> int:
        """Return how many revisions there are of all policies."""
        return sum(map(len, self._revisions.values()))


class MemoryRecordStore:
    """Events in order, and a line per run."""

    def __init__(self) -> None:
        self._rows: dict[RunId, RunRow] = {}
        self._entries: dict[RunId, list[Entry]] = {}

    async def begin(self, run_id: RunId, first: Event, at: datetime) -> int:
        """Open a record with its `RunStarted` and return its epoch, 1.

        `StoreError` where the run has a record, or `first` is another event.
        """
        if not isinstance(first, RunStarted):
            raise StoreError(f"A record begins with run_started, not with {first.type}.")
        if run_id in self._rows:
            raise StoreError(f"Run {run_id} already has a record.")
        task = first.task
        self._rows[run_id] = RunRow(
            run_id, task.prompt, task.repository, first.base_commit, at, None, None, None, 1
        )
        self._entries[run_id] = [Entry(run_id, 1, at, first)]
        return 1

    def open_line(self, run_id: RunId, task: Task, at: datetime) -> None:
        """Make the line of an ordered run, whose record nobody has begun."""
        self._rows[run_id] = RunRow(
            run_id, task.prompt, task.repository, "", at, None, None, None, 0, "queued"
        )
        self._entries[run_id] = []

    def set_line(self, run_id: RunId, **fields: Any) -> RunRow:
        """Change a run's line and return it."""
        self._rows[run_id] = replace(self._rows[run_id], **fields)
        return self._rows[run_id]

    async def take_over(self, run_id: RunId) -> int:
        """Return a new epoch; appends under an older one are refused from now on."""
        row = await self.row(run_id)
        self._rows[run_id] = replace(row, epoch=row.epoch + 1)
        return row.epoch + 1

    async def append(self, run_id: RunId, epoch: int, event: Event, at: datetime) -> Entry:
        """Add an event.

        `StaleEpochError` where another worker took over, `StoreError` where the run has ended,
        `NotFoundError` where it has no record.
        """
        row = await self.row(run_id)
        if row.epoch != epoch:
            raise StaleEpochError(f"Run {run_id} was taken over: epoch {epoch} ended.")
        if row.ended_at is not None:
            raise StoreError(f"Run {run_id} has ended; its record is closed.")
        if isinstance(event, RunEnded):
            state = None if row.state is None else "ended"
            self.set_line(run_id, ended_at=at, outcome=event.outcome, state=state)
        elif isinstance(event, RunStarted):
            self.set_line(run_id, started_at=at, base_commit=event.base_commit)
        elif isinstance(event, VerdictGiven):
            self._rows[run_id] = replace(row, verdict=event.verdict.name)
        entry = Entry(run_id, len(self._entries[run_id]) + 1, at, event)
        self._entries[run_id].append(entry)
        return entry

    async def append_all(
        self, run_id: RunId, epoch: int, together: Sequence[Event], at: datetime
    ) -> Sequence[Entry]:
        """Add events, all or none; the errors are those of `append`."""
        return [await self.append(run_id, epoch, event, at) for event in together]

    async def entries(
        self, run_id: RunId, *, after: int = 0, limit: int | None = None
    ) -> Sequence[Entry]:
        """Return a record from after `after`, in order; `NotFoundError` where there is none."""
        await self.row(run_id)
        return tuple(self._entries[run_id][max(0, after) :][:limit])

    async def rows(self, *, limit: int = 50) -> Sequence[RunRow]:
        """Return the newest runs first."""
        begun = [row for row in self._rows.values() if self._entries[row.run_id]]
        return tuple(reversed(begun))[:limit]

    async def row(self, run_id: RunId) -> RunRow:
        """Return one run's line; `NotFoundError` where there is none."""
        if run_id not in self._rows:
            raise NotFoundError(f"There is no run {run_id!r}.")
        return self._rows[run_id]

    async def find(self, prefix: str) -> RunId:
        """Return the one run whose id starts so; `NotFoundError` where none or several do."""
        found = [run_id for run_id in self._rows if run_id.startswith(prefix)]
        if len(found) != 1:
            raise NotFoundError(f"{len(found)} runs begin with {prefix!r}.")
        return found[0]
