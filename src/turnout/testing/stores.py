"""Stores that keep everything in memory; they satisfy the same ports as those on a database."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from turnout.core.events import Entry, Event, RunEnded, RunStarted, VerdictGiven
from turnout.core.ids import RequestId, RunId, SessionId, ToolCallId
from turnout.core.money import Micros
from turnout.core.policies import Reservation, SessionCaps, SessionTotals
from turnout.core.receipts import Receipt
from turnout.core.runs import RunRow
from turnout.core.tools import Holder
from turnout.errors import NotFoundError, StaleEpochError, StoreError

__all__ = [
    "MemoryAffinityStore",
    "MemoryProbesStore",
    "MemoryReceiptsStore",
    "MemoryRecordStore",
    "MemorySessionLedgerStore",
]


class MemoryReceiptsStore:
    """Receipts by request."""

    def __init__(self) -> None:
        self.receipts: dict[RequestId, Receipt] = {}
        """In the order in which they were written."""

    async def add(self, receipt: Receipt) -> None:
        """Write a receipt; `StoreError` where the request has one."""
        if receipt.request_id in self.receipts:
            raise StoreError(f"Request {receipt.request_id} already has a receipt.")
        self.receipts[receipt.request_id] = receipt

    async def get(self, request_id: RequestId) -> Receipt | None:
        """Return a receipt; None where there is none."""
        return self.receipts.get(request_id)

    async def of_session(self, session: SessionId, *, key: str) -> Sequence[Receipt]:
        """Return a session's receipts of one key, oldest first."""
        found = (r for r in self.receipts.values() if r.session == session and r.key == key)
        return tuple(sorted(found, key=lambda receipt: receipt.at))


@dataclass(frozen=True, slots=True)
class _Reserved:
    scope: str
    session: SessionId
    amount: Micros


class MemorySessionLedgerStore:
    """A session's totals, summed from its reservations."""

    def __init__(self) -> None:
        self._reserved: dict[RequestId, _Reserved] = {}

    async def reserve(
        self,
        scope: str,
        session: SessionId,
        request_id: RequestId,
        worst: Micros,
        caps: SessionCaps,
    ) -> Reservation:
        """Count a request and reserve its worst-case cost, or refuse.

        `StoreError` where the request has a reservation.
        """
        totals = await self.totals(scope, session)
        exceeded = caps.exceeded_by(totals)
        if exceeded:
            return Reservation(granted=False, exceeded=exceeded, totals=totals)
        if request_id in self._reserved:
            raise StoreError(f"Request {request_id} already has a reservation.")
        self._reserved[request_id] = _Reserved(scope, session, worst)
        return Reservation(granted=True, exceeded="", totals=totals)

    async def settle(self, request_id: RequestId, actual: Micros) -> None:
        """Replace a reservation by what the request cost; `NotFoundError` where there is none."""
        if request_id not in self._reserved:
            raise NotFoundError(f"Request {request_id} has no reservation.")
        self._reserved[request_id] = replace(self._reserved[request_id], amount=actual)

    async def totals(self, scope: str, session: SessionId) -> SessionTotals:
        """Return what a session has used."""
        amounts = [
            reserved.amount
            for reserved in self._reserved.values()
            if (reserved.scope, reserved.session) == (scope, session)
        ]
        return SessionTotals(len(amounts), Micros(sum(amounts)))


class MemoryAffinityStore:
    """The holder of each tool call, within a scope."""

    def __init__(self) -> None:
        self._holders: dict[tuple[str, ToolCallId], Holder] = {}

    async def remember(self, scope: str, calls: Sequence[ToolCallId], holder: Holder) -> None:
        """Note the model that made these calls; the last note about a call counts."""
        self._holders.update(((scope, call), holder) for call in calls)

    async def holder(self, scope: str, calls: Sequence[ToolCallId]) -> Holder | None:
        """Return the model that made the first known of these calls; None where none is known."""
        known = (self._holders.get((scope, call)) for call in calls)
        return next((holder for holder in known if holder), None)


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
            self._rows[run_id] = replace(row, ended_at=at, outcome=event.outcome)
        elif isinstance(event, VerdictGiven):
            self._rows[run_id] = replace(row, verdict=event.verdict.name)
        entry = Entry(run_id, len(self._entries[run_id]) + 1, at, event)
        self._entries[run_id].append(entry)
        return entry

    async def entries(self, run_id: RunId, *, after: int = 0) -> Sequence[Entry]:
        """Return a record from after `after`, in order; `NotFoundError` where there is none."""
        await self.row(run_id)
        return tuple(self._entries[run_id][max(0, after) :])

    async def rows(self, *, limit: int = 50) -> Sequence[RunRow]:
        """Return the newest runs first."""
        return tuple(reversed(self._rows.values()))[:limit]

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
