"""Publishes runs that have ended, step by step, and again where a step did not work.

Each step can be done twice without harm: a push of the same commit, a draft of the same branch, a
comment on the same run. So nothing is lost and nothing is there twice, whenever a process dies.
"""

import asyncio
import logging
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from turnout.core.clock import Clock
from turnout.core.govern.happenings import Happening, run_published
from turnout.core.service.orders import OrderedRun
from turnout.core.service.publications import Publication, branch_of
from turnout.errors import DeliveryError, ForgeError, StoreError, TurnoutError, UnfitError
from turnout.runs.durable.ports import OrderStore
from turnout.runs.forges.ports import Draft, ForgeDesk, Told
from turnout.runs.ports import RecordStore
from turnout.runs.publish.ports import PublicationStore, Push
from turnout.runs.publish.push import Change
from turnout.runs.publish.words import commit_message, draft_text, outcome_words, title_of
from turnout.runs.summary import RunResult, fold

__all__ = ["Publisher", "Publishing"]

_AT_ONCE: Final = 4
_CLAIMED_SECONDS: Final = 300.0
"""After which another process takes it for left: where it was not, a step is done twice."""
_EVERY: Final = 5.0
_CLOSING_SECONDS: Final = 5.0
_FIRST_PAUSE: Final = 10.0
_LONGEST_PAUSE: Final = 3_600.0
_GIVEN_UP: Final = timedelta(days=3)
"""After a run's end; what has failed so long is not tried again."""
_UNFINISHED: Final = frozenset({"cancelled", "failed"})
_NOTHING: Final = "The run has made no diff."
_NO_BRANCH: Final = re.compile(r"HEAD|[0-9a-f]{40}|[0-9a-f]{64}")
"""Bases that a draft cannot be for."""
_LOG: Final = logging.getLogger(__name__)


def _tell_nobody(happening: Happening) -> None:
    """Let it pass."""


@dataclass(frozen=True, slots=True)
class Publishing:
    """What publishing works with."""

    store: PublicationStore
    orders: OrderStore
    records: RecordStore
    push: Push
    forges: ForgeDesk
    clock: Clock
    told: Callable[[Happening], None] = _tell_nobody
    """Is told of the end of a publication, which is written down already."""
    hide: Callable[[str], str] = str
    """Takes out of a text where things are on this machine: callers and forges read it."""


@dataclass(slots=True)
class Publisher:
    """Looks for what is due until it is closed; several at once share the work."""

    parts: Publishing
    _woken: asyncio.Event = field(default_factory=asyncio.Event)
    _closing: bool = False
    _task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Publish from now on; only where a loop runs."""
        self._task = asyncio.create_task(self._run())

    def wake(self) -> None:
        """Look at once: a run has ended."""
        self._woken.set()

    async def close(self) -> None:
        """Stop soon: a step under way is done again by whoever comes next."""
        if self._task is not None:
            self._closing = True
            self._woken.set()
            await asyncio.wait([self._task], timeout=_CLOSING_SECONDS)
            self._task.cancel()
            await asyncio.wait([self._task])

    async def publish_due(self) -> int:
        """Do what is due now and return how many publications that were, done or not."""
        now = self.parts.clock.now()
        due = await self.parts.store.claim(now, limit=_AT_ONCE, seconds=_CLAIMED_SECONDS)
        ends = await asyncio.gather(
            *(_Job(self.parts, each).do() for each in due), return_exceptions=True
        )
        for each, error in zip(due, ends, strict=True):
            # Once its claim has lapsed it is tried again; the others go on.
            if isinstance(error, Exception):
                _LOG.error("%s is not published: %s", each.run_id, error, exc_info=error)
        return len(due)

    async def _run(self) -> None:
        while not self._closing:
            self._woken.clear()
            done = 0
            try:
                done = await self.publish_due()
            except StoreError as error:
                _LOG.warning("What is to be published cannot be read or kept: %s", error)
            if not done:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_EVERY):
                        await self._woken.wait()


@dataclass(slots=True)
class _Job:
    """One publication, from the step where it is to its end or its next try."""

    parts: Publishing
    publication: Publication

    async def do(self) -> None:
        """Do all that can be done now; what may work later is left for then."""
        run_id = self.publication.run_id
        run = await self.parts.orders.get(self.publication.project, run_id)
        entries = await self.parts.records.entries(run_id)
        result = fold(entries) if entries else None
        try:
            failure = await self._publish(run, result)
            failure = await self._tell(run, result, failure) or failure
        except (DeliveryError, ForgeError, UnfitError) as error:
            await self._later(self._words(error))
            return
        await self._over(run, failure)

    async def _publish(self, run: OrderedRun, result: RunResult | None) -> str:
        """Push and draft what is not there yet; return why that will never work, or nothing.

        What may work later comes out as an error.
        """
        if run.order.publishes is None:
            return ""
        why_not = _NOTHING if result is None else _why_not(result)
        if result is None or why_not:
            self.publication = replace(self.publication, detail=why_not)
            return ""
        try:
            if not self.publication.commit:
                await self._push(run, result)
            if run.order.publishes == "draft" and not self.publication.link:
                await self._draft(run, result)
        except (DeliveryError, ForgeError) as error:
            return self._final(run, error)
        return ""

    async def _push(self, run: OrderedRun, result: RunResult) -> None:
        at = run.ended_at or run.ordered_at
        message = commit_message(result, _title(run))
        change = Change(result.base_commit, result.patch.diff, message, at)
        commit = await self.parts.push(run.order.task.repository, run.run_id, change)
        await self._keep(replace(self.publication, branch=branch_of(run.run_id), commit=commit))

    async def _draft(self, run: OrderedRun, result: RunResult) -> None:
        origin, base = run.order.origin, run.order.task.base
        draft = Draft(
            repository=run.order.task.repository,
            run_id=run.run_id,
            branch=self.publication.branch,
            title=title_of(_title(run) or result.task.prompt),
            text=draft_text(result),
            base=None if _NO_BRANCH.fullmatch(base) else base,
            issue=origin.number if origin is not None and origin.thread == "issue" else None,
        )
        link = await self.parts.forges.open_draft(draft)
        await self._keep(replace(self.publication, link=link))

    async def _tell(self, run: OrderedRun, result: RunResult | None, failure: str) -> str:
        if run.order.origin is None:
            return ""
        words = outcome_words(result, failure or self.publication.detail)
        try:
            await self.parts.forges.tell(run, Told(words, self.publication.link or None))
        except ForgeError as error:
            return self._final(run, error)
        return ""

    def _final(self, run: OrderedRun, error: DeliveryError | ForgeError) -> str:
        """Return what an error says where nothing can be hoped for; else it comes out."""
        age = self.parts.clock.now() - (run.ended_at or run.ordered_at)
        if error.passing and age < _GIVEN_UP:
            raise error
        return self._words(error)

    def _words(self, error: TurnoutError) -> str:
        _LOG.warning("%s is not published: %s", self.publication.run_id, error)
        return self.parts.hide(str(error))

    async def _keep(self, publication: Publication) -> None:
        self.publication = publication
        await self.parts.store.save(publication)

    async def _later(self, why: str) -> None:
        tries = self.publication.tries
        pause = min(_FIRST_PAUSE * 3 ** min(tries, 10), _LONGEST_PAUSE)
        due_at = self.parts.clock.now() + timedelta(seconds=pause)
        await self._keep(replace(self.publication, detail=why, tries=tries + 1, due_at=due_at))

    async def _over(self, run: OrderedRun, failure: str) -> None:
        detail = failure or ("" if self.publication.branch else self.publication.detail)
        over = replace(self.publication, state="failed" if failure else "done", detail=detail)
        now = self.parts.clock.now()
        told = None if run.order.publishes is None else run_published(now, run, over)
        await self.parts.store.save(over, told)
        if told is not None:
            self.parts.told(told)


def _title(run: OrderedRun) -> str:
    """Return the title of the issue that asks for a run; nothing where none does."""
    return "" if run.order.origin is None else run.order.origin.title


def _why_not(result: RunResult) -> str:
    """Return why a run's diff is not published; nothing where it is."""
    if not result.patch:
        return _NOTHING
    if result.outcome in _UNFINISHED:
        return f"The run has ended as {result.outcome}."
    return "The review blocks the change." if result.blocked else ""
