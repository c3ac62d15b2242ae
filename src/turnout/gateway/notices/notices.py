"""Noticing beside the path: a request leaves a mark in memory, a task of its own writes it down."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from turnout.core.clock import Clock
from turnout.core.govern.happenings import (
    Happening,
    session_capped,
    tool_first_seen,
    tool_outside_list,
    tool_refused,
)
from turnout.core.govern.toolwatch import OutsideTool, SeenTool
from turnout.core.receipts import Receipt
from turnout.errors import StoreError
from turnout.gateway.notices.ports import NoticeStore

__all__ = ["Notices"]

_CAPPED: Final = frozenset({"session_request_cap", "session_spend_cap"})
_REFUSED: Final = "tool_not_allowed"
_MOST_MARKS: Final = 2_000
"""Different marks that wait to be written; further ones are dropped."""
_MOST_TOLD: Final = 50_000
_AT_ONCE: Final = 500
_LONGEST_NAME: Final = 256
_OF_CONNECTION: Final = "mcp:"


_Seen = tuple[str, ...]
_Shown = tuple[str, str, str, tuple[str, ...], tuple[str, ...], tuple[str, ...], str | None]


@dataclass(slots=True)
class _Mark:
    """Requests that showed the same."""

    first: Receipt
    last_at: datetime
    requests: int = 1


@dataclass(slots=True)
class _Batch:
    """What is written together."""

    seen: dict[_Seen, SeenTool] = field(default_factory=dict)
    outside: dict[_Seen, OutsideTool] = field(default_factory=dict)
    happened: dict[_Seen, Happening] = field(default_factory=dict)


class Notices:
    """Notes what requests show; to do so costs them a few microseconds and no wait.

    What is noted and not yet written is lost with the process: a second's worth of the inventory,
    never a receipt. Everything is bounded, whatever clients send.
    """

    def __init__(
        self,
        store: NoticeStore,
        clock: Clock,
        *,
        on_new: Callable[[], None] | None = None,
        every: float = 1.0,
    ) -> None:
        """`on_new` is told when something happened that was not known; `every` is in seconds."""
        self._store = store
        self._clock = clock
        self._on_new = on_new
        self._every = every
        self._marks: dict[_Shown, _Mark] = {}
        self._happened: dict[_Seen, Happening] = {}
        self._told: set[_Seen] = set()
        self._some = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._writing: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Write from now on; only where a loop runs."""
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Write what is left and stop."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._writing is not None:
            await self._writing
        await self.write()

    def saw(self, receipt: Receipt) -> None:
        """Note what a request showed."""
        if receipt.tools_declared:
            self._mark(receipt)
        if receipt.error_code in _CAPPED:
            self.happened(session_capped(receipt))

    def happened(self, happening: Happening) -> None:
        """Note what happened outside of requests, or is known already."""
        name = (happening.id,)
        if name not in self._told and len(self._happened) < _MOST_MARKS:
            self._happened[name] = happening
            self._some.set()

    def wake(self) -> None:
        """Have those told at once whom somebody else's write is for."""
        if self._on_new is not None:
            self._on_new()

    async def write(self) -> None:
        """Write everything that was noted; what the store does not take stays noted."""
        marks, happened = self._marks, self._happened
        self._marks, self._happened = {}, {}
        waiting = list(marks.items())
        while waiting or happened:
            batch = _Batch(happened=happened)
            taken = 0
            for _, mark in waiting:
                if len(batch.seen) >= _AT_ONCE:
                    break
                self._add(batch, mark)
                taken += 1
            if not await self._take(batch):
                self._put_back(waiting, happened)
                return
            waiting, happened = waiting[taken:], {}

    def _mark(self, receipt: Receipt) -> None:
        shown = (
            receipt.project,
            receipt.key,
            receipt.policy,
            receipt.tools_declared,
            receipt.tools_called,
            receipt.tools_outside,
            receipt.error_code if receipt.status == "refused" else None,
        )
        mark = self._marks.get(shown)
        if mark is not None:
            mark.requests += 1
            mark.last_at = max(mark.last_at, receipt.at)
        elif len(self._marks) < _MOST_MARKS:
            self._marks[shown] = _Mark(receipt, receipt.at)
            self._some.set()

    async def _run(self) -> None:
        while True:
            await self._some.wait()
            await self._clock.sleep(self._every)
            self._some.clear()
            # A task of its own: the write that is under way when we close is waited for.
            self._writing = asyncio.create_task(self.write())
            await asyncio.shield(self._writing)

    async def _take(self, batch: _Batch) -> bool:
        """Write a batch; say whether the store took it."""
        happened = {name: one for name, one in batch.happened.items() if name not in self._told}
        try:
            new = await self._store.write(
                tuple(batch.seen.values()), tuple(batch.outside.values()), tuple(happened.values())
            )
        except StoreError:
            return False
        if len(self._told) > _MOST_TOLD:
            # The store knows them: they are only offered to it once more.
            self._told.clear()
        self._told.update(happened)
        if new and self._on_new is not None:
            self._on_new()
        return True

    def _put_back(
        self, waiting: list[tuple[_Shown, _Mark]], happened: dict[_Seen, Happening]
    ) -> None:
        newer, self._marks = self._marks, dict(waiting)
        for shown, mark in newer.items():
            earlier = self._marks.get(shown)
            if earlier is not None:
                earlier.requests += mark.requests
                earlier.last_at = max(earlier.last_at, mark.last_at)
            elif len(self._marks) < _MOST_MARKS:
                self._marks[shown] = mark
        self._happened = {**happened, **self._happened}
        self._some.set()

    def _add(self, batch: _Batch, mark: _Mark) -> None:
        receipt = mark.first
        declared, called = frozenset(receipt.tools_declared), frozenset(receipt.tools_called)
        for tool in declared | {name for name in called if name.startswith(_OF_CONNECTION)}:
            shown = _seen(mark, tool, declared=tool in declared, called=tool in called)
            _merge_seen(batch.seen, shown)
            self._tell(batch, tool_first_seen, receipt, (receipt.project, shown.tool))
        refused = receipt.status == "refused"
        if not receipt.policy or (refused and receipt.error_code != _REFUSED):
            return
        for tool in frozenset(receipt.tools_outside):
            hit = _outside(mark, tool)
            _merge_outside(batch.outside, hit)
            make = tool_refused if hit.refused else tool_outside_list
            self._tell(batch, make, receipt, (hit.policy, hit.day, hit.key, hit.tool))

    def _tell(
        self,
        batch: _Batch,
        make: Callable[[Receipt, str], Happening],
        receipt: Receipt,
        about: _Seen,
    ) -> None:
        name = (make.__name__, *about)
        if name not in self._told and name not in batch.happened:
            batch.happened[name] = make(receipt, about[-1])


def _seen(mark: _Mark, tool: str, *, declared: bool, called: bool) -> SeenTool:
    receipt, requests = mark.first, mark.requests
    return SeenTool(
        project=receipt.project,
        key=receipt.key,
        tool=tool[:_LONGEST_NAME],
        first_at=receipt.at,
        last_at=mark.last_at,
        requests=requests if declared else 0,
        calls=requests if called else 0,
    )


def _outside(mark: _Mark, tool: str) -> OutsideTool:
    receipt, requests = mark.first, mark.requests
    refused = receipt.error_code == _REFUSED
    return OutsideTool(
        policy=receipt.policy,
        day=f"{receipt.at.astimezone(UTC):%Y-%m-%d}",
        key=receipt.key,
        tool=tool[:_LONGEST_NAME],
        served=0 if refused else requests,
        refused=requests if refused else 0,
        last_at=mark.last_at,
    )


def _merge_seen(rows: dict[_Seen, SeenTool], more: SeenTool) -> None:
    name = (more.project, more.key, more.tool)
    old = rows.get(name)
    if old is not None:
        more = replace(
            old,
            last_at=max(old.last_at, more.last_at),
            requests=old.requests + more.requests,
            calls=old.calls + more.calls,
        )
    rows[name] = more


def _merge_outside(rows: dict[_Seen, OutsideTool], more: OutsideTool) -> None:
    name = (more.policy, more.day, more.key, more.tool)
    old = rows.get(name)
    if old is not None:
        more = replace(
            old,
            last_at=max(old.last_at, more.last_at),
            served=old.served + more.served,
            refused=old.refused + more.refused,
        )
    rows[name] = more
