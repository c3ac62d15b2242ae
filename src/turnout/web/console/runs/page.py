"""The page of one run: where it stands, and its story as it goes on.

A stream brings a page what is new, from where the page is: one that was reloaded, or away for a
while, shows the same as one that was there all the time.
"""

import asyncio
import hashlib
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote, unquote

from starlette.responses import Response

from turnout.core.events import Entry, ModelCallDone
from turnout.core.ids import RequestId, RunId
from turnout.core.service.figures import RunFigures
from turnout.core.service.orders import Head, OrderedRun, cancelled_words
from turnout.core.service.publications import Publication
from turnout.errors import GatewayError, NotFoundError
from turnout.runs.summary import RunResult
from turnout.web.console.runs.details import arguments_of, detail_of
from turnout.web.console.runs.diff.asked import changes_of
from turnout.web.console.runs.diff.showing import DiffView, opened
from turnout.web.console.runs.parts import RunPages
from turnout.web.console.runs.repeating import repeated
from turnout.web.console.runs.story import Story
from turnout.web.console.runs.words import Row
from turnout.web.console.sections import check_access
from turnout.web.console.visits import Visit, in_project
from turnout.web.runs.streams import resumed_after

__all__ = ["Gap", "RunView", "follow", "show_entry", "show_more", "show_raw", "show_run"]

_FIRST: Final = 40
_LAST: Final = 120
"""Rows from the beginning and from the end that a page has; those between come on demand."""
_AT_ONCE: Final = 200
_PAUSE: Final = 0.1
"""Seconds between two pieces of news of one page."""
_ASK_DIGITS: Final = 12
_ASK: Final = re.compile(rf"[0-9a-f]{{{_ASK_DIGITS}}}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Gap:
    """Rows that are not on the page yet."""

    start: int
    """Place of the first of them among all rows, from 0."""
    end: int
    """Place of the first one after them."""

    @property
    def count(self) -> int:
        """How many there are."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class RunView:
    """What the page of a run shows."""

    run: OrderedRun
    figures: RunFigures
    publication: Publication | None
    result: RunResult | None
    """None while nobody has begun it."""
    seen: int
    """Place of the newest entry that is shown."""
    repaired: Mapping[RequestId, int]
    """How often the gateway mended what a model answered."""
    seconds: float | None
    waited: float
    """Seconds of these in which it waited for people."""
    may_push: bool
    rows: Sequence[Row] = ()
    """New rows; on a whole page those before the gap."""
    changed: Sequence[Row] = ()
    """Rows that the page has, as they are now."""
    gap: Gap | None = None
    later: Sequence[Row] = ()
    """Rows after the gap."""
    stood: str = ""
    """How the run stood when the page was last told; empty: unknown."""
    changes: DiffView | None = None
    """What the call that waits for a person would change; None: it is shown as it came."""

    @property
    def stands(self) -> str:
        """How it stands, as far as it decides what may be done with it."""
        run, publication = self.run, self.publication
        published = "" if publication is None else f"{publication.state}{publication.tries}"
        return f"{run.state}.{run.cancel_asked:d}.{published}.{self.ask}"

    @property
    def ask(self) -> str:
        """What the call that waits for a person is called on the page; empty for none."""
        waits = self.run.waits_for
        if waits is None:
            return ""
        named = f"{waits.step}.{waits.call.id}".encode(errors="replace")
        return hashlib.sha256(named).hexdigest()[:_ASK_DIGITS]

    @property
    def settled(self) -> str:
        """The call that the page shows as waiting and that waits no more; empty for none."""
        before = self._asked_before
        return before if before != self.ask else ""

    @property
    def asks_anew(self) -> bool:
        """Whether a call waits that the page does not show yet."""
        return bool(self.ask) and self._asked_before != self.ask

    @property
    def _asked_before(self) -> str:
        before = self.stood.rpartition(".")[2]
        return before if _ASK.fullmatch(before) else ""

    @property
    def asked(self) -> str:
        """What the call that waits for a person would do, as people read it; empty for none."""
        waits = self.run.waits_for
        return "" if waits is None else arguments_of(waits.call).text

    @property
    def again(self) -> Sequence[str]:
        """What happens outside of the service where it is ordered again; each a clause."""
        return tuple(repeated(self.run.order))

    @property
    def cancelled(self) -> str:
        """Who has cancelled it, where what is shown of its end does not say so; else empty."""
        said = "" if self.result is None else self.result.reason
        by = self.run.order.later.cancelled_by
        words = cancelled_words(by)
        return f"{words}." if by and words not in said else ""

    @property
    def live(self) -> bool:
        """Whether more will happen."""
        over = self.publication is None or self.publication.over
        return self.run.state != "ended" or not over

    @property
    def models(self) -> str:
        """Who answered its calls, and how often."""
        return ", ".join(f"{share.model} ×{share.calls}" for share in self.figures.models[:6])


async def show_run(pages: RunPages, visit: Visit) -> Response:
    """Show a run; of a long story its beginning and its end.

    Admins are led to the project that it is of, wherever their link comes from.
    """
    try:
        run, story = await _found(pages, visit)
    except NotFoundError:
        run_id = RunId(visit.path("run_id"))
        project = await pages.runs.desk.whose(run_id) if visit.caller.admin else None
        if project is None or project == visit.project:
            raise
        return visit.go(in_project(f"/runs/{run_id}", project, visit.caller.project))
    rows, gap, later = list(story.rows), None, list[Row]()
    if len(rows) > _FIRST + _LAST + _AT_ONCE // 2:
        gap = Gap(_FIRST, len(rows) - _LAST)
        rows, later = rows[:_FIRST], rows[-_LAST:]
    view = await _view(pages, run, story, rows)
    return visit.page("runs/run.html", replace(view, gap=gap, later=later))


async def show_more(pages: RunPages, visit: Visit) -> Response:
    """Show what is new since a page was told, or a part of what it has left out."""
    run, story = await _found(pages, visit)
    start, end = _number(visit, "start"), _number(visit, "end")
    if start is not None and end is not None:
        stop = min(start + _AT_ONCE, end, len(story.rows))
        gap = Gap(stop, end) if stop < end else None
        view = await _view(pages, run, story, story.rows[start:stop])
        return visit.page("runs/between.html", replace(view, gap=gap))
    told = await _news(pages, run, story, _number(visit, "seen") or 0, visit.query("stood"))
    return Response(status_code=204) if told is None else visit.page("runs/news.html", told)


async def follow(pages: RunPages, visit: Visit) -> Response:
    """Send what is new as parts of the page, as it happens, until the run has ended."""
    run_id, desk = RunId(visit.path("run_id")), pages.runs.desk
    place, _, told = visit.request.headers.get("last-event-id", "").strip().partition(".")
    seen = resumed_after(place, _number(visit, "seen") or 0)
    await desk.get(visit.project, run_id)
    # One that comes back was told since it was opened how the run stands.
    stood = unquote(told) if place else visit.query("stood")
    news = _News(pages, visit, seen, stood)
    heads = desk.heads(visit.project, run_id)
    return pages.runs.streams.sending(news.of(heads), _still(visit), visit.caller.key)


async def show_entry(pages: RunPages, visit: Visit) -> Response:
    """Show all that one entry of the record says."""
    run, entry = await _entry(pages, visit)
    event, receipt = entry.event, None
    if isinstance(event, ModelCallDone):
        receipt = await pages.receipt(run, event.request_id)
    template = "runs/detail.html" if visit.partial else "runs/entry.html"
    return visit.page(template, detail_of(entry, receipt))


async def show_raw(pages: RunPages, visit: Visit) -> Response:
    """Return one text of an entry whole, as a file; a browser never shows it."""
    _, entry = await _entry(pages, visit)
    parts, number = detail_of(entry).parts, visit.path("part")
    if not number.isdecimal() or not number.isascii() or len(number) > 5:
        raise NotFoundError("There is no such text.")
    if int(number) >= len(parts):
        raise NotFoundError("There is no such text.")
    name = f'attachment; filename="{entry.run_id}-{entry.seq}-{int(number)}.txt"'
    return Response(
        parts[int(number)].text.encode(errors="backslashreplace"),
        headers={"content-disposition": name},
        media_type="text/plain; charset=utf-8",
    )


async def _found(pages: RunPages, visit: Visit) -> tuple[OrderedRun, Story]:
    run_id = RunId(visit.path("run_id"))
    run = await pages.runs.desk.get(visit.project, run_id)
    # Read after that: nothing is missing in the story of a run that has ended.
    return run, await pages.stories.of(pages.runs.desk, visit.project, run_id)


async def _entry(pages: RunPages, visit: Visit) -> tuple[OrderedRun, Entry]:
    run_id = RunId(visit.path("run_id"))
    run = await pages.runs.desk.get(visit.project, run_id)
    seq = visit.path("seq")
    if not (seq.isascii() and seq.isdecimal() and 0 < len(seq) < 10):
        raise NotFoundError("There is no such entry.")
    found = await pages.runs.desk.entries(visit.project, run_id, after=int(seq) - 1, limit=1)
    if not found or found[0].seq != int(seq):
        raise NotFoundError("There is no such entry.")
    return run, found[0]


async def _view(pages: RunPages, run: OrderedRun, story: Story, rows: Sequence[Row]) -> RunView:
    # Others may go on with the story from the first `await` on.
    seen, result, shown = story.last_seq, story.result, tuple(rows)
    figures = (await pages.figures([run])).get(run.run_id, RunFigures())
    publications = await pages.runs.publications([run.run_id])
    until = run.ended_at or pages.clock.now()
    waited = story.waited(until)
    return RunView(
        run=run,
        figures=figures,
        publication=publications.get(run.run_id),
        result=result,
        seen=seen,
        repaired=await pages.repaired(run),
        waited=waited,
        seconds=None if run.started_at is None else (until - run.started_at).total_seconds(),
        may_push=pages.runs.repositories.may_push(run.order.task.repository),
        rows=shown,
        changes=None if run.waits_for is None else await asyncio.to_thread(_changes, run),
    )


def _changes(run: OrderedRun) -> DiffView | None:
    """Return what the call that a run waits for would change, in colours."""
    files = () if run.waits_for is None else changes_of(run.waits_for.call)
    shown = [opened(number, file) for number, file in enumerate(files)]
    return DiffView(run.run_id, "unified", shown, 0) if shown else None


def _number(visit: Visit, name: str) -> int | None:
    """Return a number of the query; None where it is not there."""
    text = visit.query(name)
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise GatewayError(
            f"`{name}` is no place that this page has given.",
            status=400,
            code="invalid_request",
            param=name,
        )
    return int(text)


def _still(visit: Visit) -> Callable[[], None]:
    def check() -> None:
        caller = visit.again()
        check_access(caller, "viewer")
        if visit.project != caller.project and not caller.admin:
            raise GatewayError(
                "Your key is of another project by now.", status=403, code="project_not_allowed"
            )

    return check


async def _news(
    pages: RunPages, run: OrderedRun, story: Story, seen: int, stood: str
) -> RunView | None:
    """Return what has changed since an entry, and since a run stood so; None: nothing."""
    told = list(story.since(seen))
    view = await _view(pages, run, story, [row for row in told if row.seq > seen])
    if view.seen <= seen and view.stands == stood:
        return None
    return replace(view, changed=[row for row in told if row.seq <= seen], stood=stood)


@dataclass(slots=True)
class _News:
    """What one page is told: each change once, in order."""

    pages: RunPages
    visit: Visit
    seen: int
    stood: str

    async def of(self, heads: AsyncGenerator[Head, None]) -> AsyncGenerator[bytes, None]:
        async with aclosing(heads):
            async for _ in heads:
                # What may be done from the page goes by what the key may do by now.
                self.visit = replace(self.visit, caller=self.visit.again())
                run, story = await _found(self.pages, self.visit)
                view = await _news(self.pages, run, story, self.seen, self.stood)
                if view is not None:
                    self.seen, self.stood = view.seen, view.stands
                    yield _event(view, self.visit.page("runs/news.html", view).body)
                    await self.pages.clock.sleep(_PAUSE)


def _event(view: RunView, body: bytes | memoryview) -> bytes:
    lines = b"".join(b"data: " + line + b"\n" for line in bytes(body).splitlines() if line)
    stands = quote(view.stands, safe="", errors="replace")
    return b"id: %d.%s\n%s\n" % (view.seen, stands.encode(), lines)
