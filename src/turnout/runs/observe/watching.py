"""Follows the records of runs beside the work, and tells sinks of their spans."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from turnout.core.events import ApprovalGiven, Entry, RunEnded, RunResumed
from turnout.core.ids import RunId
from turnout.core.observe.spans import SpanSink
from turnout.errors import NotFoundError, StoreError
from turnout.runs.observe.timeline import Timeline
from turnout.runs.ports import RecordStore

__all__ = ["RunWatch"]

_MOST_RUNS: Final = 1_000
"""Runs that are followed at once; of further ones the one that was quiet for longest is left."""
_MOST_WAITING: Final = 20_000
"""Entries that wait to be told of; further ones are read from the record with the next."""
_AT_ONCE: Final = 200
"""Entries after which others have their turn."""
_LAST_SECONDS: Final = 5.0
"""For what waits when it is to end."""


@dataclass(slots=True)
class _Followed:
    timeline: Timeline
    seq: int = 0
    """Place of the newest entry that it holds."""


class RunWatch:
    """Tells of the spans that entries end; `async with` starts it and tells what is left.

    Whoever commits an entry waits for nothing here. Of what another process has put on record, the
    spans are that one's to tell.
    """

    def __init__(
        self, records: RecordStore, sinks: Sequence[SpanSink], *, content: bool = False
    ) -> None:
        """Tell with `content` what was said as well."""
        self._records = records
        self._sinks = sinks
        self._content = content
        self._runs: OrderedDict[RunId, _Followed] = OrderedDict()
        self._ended: OrderedDict[RunId, None] = OrderedDict()
        """Runs whose end was told."""
        self._news: deque[Entry | RunId] = deque()
        self._some = asyncio.Event()
        self._closing = False
        self._telling: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._telling = asyncio.create_task(self._tell_all())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing = True
        self._some.set()
        if self._telling is not None:
            await asyncio.wait({self._telling}, timeout=_LAST_SECONDS)
            self._telling.cancel()
            await asyncio.wait({self._telling})

    def entry(self, entry: Entry) -> None:
        """Be told of an entry that this process has committed; returns at once."""
        self._add(entry)

    def look(self, run_id: RunId) -> None:
        """Be told that a run's record was written to beside the work; returns at once."""
        self._add(run_id)

    def _add(self, news: Entry | RunId) -> None:
        if self._sinks and len(self._news) < _MOST_WAITING:
            self._news.append(news)
            self._some.set()

    async def _tell_all(self) -> None:
        told = 0
        while self._news or not self._closing:
            if not self._news:
                self._some.clear()
                await self._some.wait()
                continue
            # What cannot be read now is read with the next entry of that run.
            with suppress(StoreError, NotFoundError):
                await self._take(self._news.popleft())
            told += 1
            if told % _AT_ONCE == 0:
                await asyncio.sleep(0)

    async def _take(self, news: Entry | RunId) -> None:
        run_id = news.run_id if isinstance(news, Entry) else news
        if run_id in self._ended:
            return
        followed = self._followed(run_id)
        if isinstance(news, Entry) and news.seq <= followed.seq:
            return
        if isinstance(news, Entry) and news.seq == followed.seq + 1:
            self._fold(followed, [news])
            return
        entries = await self._records.entries(run_id, after=followed.seq)
        if isinstance(news, Entry):
            # What came after it is in the news as well.
            entries = [entry for entry in entries if entry.seq <= news.seq]
        self._fold(followed, entries)

    def _fold(self, followed: _Followed, entries: Sequence[Entry]) -> None:
        """Take entries in, and tell of their spans, those left out that others have told."""
        if not entries:
            return
        newest = entries[-1]
        others = followed.seq == 0 or isinstance(newest.event, RunResumed)
        for entry in entries:
            spans = followed.timeline.add(entry)
            followed.seq = entry.seq
            # Decisions are put on record by whoever is asked, and told by whoever goes on.
            own = not others or entry is newest or isinstance(entry.event, ApprovalGiven)
            if spans and own:
                for sink in self._sinks:
                    sink.take(spans)
        if any(isinstance(entry.event, RunEnded) for entry in entries):
            del self._runs[newest.run_id]
            self._ended[newest.run_id] = None
            if len(self._ended) > _MOST_RUNS:
                self._ended.popitem(last=False)

    def _followed(self, run_id: RunId) -> _Followed:
        if run_id not in self._runs:
            if len(self._runs) >= _MOST_RUNS:
                self._runs.popitem(last=False)
            self._runs[run_id] = _Followed(Timeline(run_id, content=self._content))
        self._runs.move_to_end(run_id)
        return self._runs[run_id]
