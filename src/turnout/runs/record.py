"""Writes the record of a run, and reads those of past runs."""

from collections.abc import Callable, Sequence

from turnout.core.clock import Clock
from turnout.core.events import Entry, Event, RunStarted
from turnout.core.ids import RunId
from turnout.core.runs import RunRow
from turnout.errors import NotFoundError
from turnout.runs.ports import RecordStore
from turnout.runs.summary import RunResult, fold

__all__ = ["Recorder", "RunRecords"]


class Recorder:
    """Appends events to one run's record; an entry is shown only once it is durable."""

    def __init__(
        self,
        store: RecordStore,
        run_id: RunId,
        clock: Clock,
        publish: Callable[[Entry], None],
        *,
        epoch: int = 0,
        is_known: Callable[[Event], bool] = lambda _: False,
        told: Callable[[Event], Event] = lambda event: event,
    ) -> None:
        """Go on under `epoch`, leaving out what `is_known`; without one, `begin` comes first.

        `told` returns an event as it goes on record.
        """
        self._store = store
        self._clock = clock
        self._publish = publish
        self._epoch = epoch
        self._is_known = is_known
        self._told = told
        self.run_id = run_id

    @property
    def epoch(self) -> int:
        """Of the segment that writes; 0 before the record is begun."""
        return self._epoch

    async def begin(self, first: RunStarted) -> None:
        """Open the record with its first event."""
        at = self._clock.now()
        self._epoch = await self._store.begin(self.run_id, first, at)
        self._publish(Entry(self.run_id, 1, at, first))

    async def add(self, *together: Event) -> None:
        """Commit events, all or none, then show them."""
        told = map(self._told, together)
        new = [event for event in told if not self._is_known(event)]
        if not new:
            return
        at = self._clock.now()
        for entry in await self._store.append_all(self.run_id, self._epoch, new, at):
            self._publish(entry)


class RunRecords:
    """Answers questions about runs from their records."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    async def rows(self, *, limit: int = 50) -> Sequence[RunRow]:
        """Return the newest runs first."""
        return await self._store.rows(limit=limit)

    async def entries(self, prefix: str | None) -> Sequence[Entry]:
        """Return the record of the one run whose id starts so; None stands for the newest run.

        `NotFoundError` where there is none, or where several start so.
        """
        if prefix is not None:
            return await self._store.entries(await self._store.find(prefix))
        newest = await self._store.rows(limit=1)
        if not newest:
            raise NotFoundError("There are no runs yet.", mend="Start one with `turnout run`.")
        return await self._store.entries(newest[0].run_id)

    async def result(self, prefix: str | None) -> RunResult:
        """Return what the record of such a run amounts to so far."""
        return fold(await self.entries(prefix))
