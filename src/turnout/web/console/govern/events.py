"""What happened, which tools were declared, and who changed what."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, get_args
from urllib.parse import urlencode

from starlette.responses import Response

from turnout.core.clock import Clock
from turnout.core.govern.audit import AuditFilter, AuditPage
from turnout.core.govern.happenings import Happening, HappeningKind
from turnout.core.govern.toolwatch import SeenTool
from turnout.gateway.admin.usage import only_own
from turnout.web.console.govern.parts import Noticed
from turnout.web.console.govern.usage import read_moment
from turnout.web.console.govern.webhooks import webhook_changes, webhook_pages
from turnout.web.console.sections import Page, Section
from turnout.web.console.visits import Visit

__all__ = [
    "ChangesView",
    "EventsView",
    "ToolsView",
    "events_section",
]

_MOST: Final = 200
_A_PAGE: Final = 100
_LONGEST: Final = 512
_LONGEST_NUMBER: Final = 15


@dataclass(frozen=True, slots=True)
class EventsView:
    """What happened, newest first."""

    events: Sequence[Happening]
    kinds: Sequence[HappeningKind]
    """Those that are shown; empty: every kind."""
    since: str
    key: str
    wrong: str = ""
    """What is wrong with `since`: nothing is listed then."""
    choices: tuple[HappeningKind, ...] = get_args(HappeningKind)

    @property
    def poll(self) -> str:
        """Where the list is asked for again: as it was, whatever is typed into the form."""
        said: list[tuple[str, str]] = [("kind", kind) for kind in self.kinds]
        said += [(name, text) for name, text in (("since", self.since), ("key", self.key)) if text]
        return f"/events?{urlencode(said)}" if said else "/events"


@dataclass(frozen=True, slots=True)
class ToolsView:
    """The tools that requests declared: those that are new to a key first."""

    tools: Sequence[SeenTool]


@dataclass(frozen=True, slots=True)
class ChangesView:
    """Who changed what, newest first."""

    page: AuditPage
    actor: str
    action: str
    subject: str


def events_section(noticed: Noticed, clock: Clock) -> Section:
    """Return the pages: a key sees what it did itself, an admin everything."""
    pages = _Pages(noticed, clock)
    return Section(
        "Events",
        "/events",
        pages=(
            Page("/events", pages.events),
            Page("/events/tools", pages.tools),
            Page("/events/changes", pages.changes, "admin"),
            *webhook_pages(noticed.webhooks),
        ),
        changes=webhook_changes(noticed.webhooks),
    )


class _Pages:
    def __init__(self, noticed: Noticed, clock: Clock) -> None:
        self._noticed = noticed
        self._clock = clock

    async def events(self, visit: Visit) -> Response:
        """List what happened; a page that looks again asks for the list alone."""
        asked = visit.request.query_params.getlist("kind")
        known: tuple[HappeningKind, ...] = get_args(HappeningKind)
        kinds = [kind for kind in known if kind in asked]
        since, key = _query(visit, "since"), _query(visit, "key")
        errors, own = dict[str, str](), only_own(visit.caller, key or None)
        first = read_moment("since", since, self._clock.now(), errors)
        if errors:
            wrong = EventsView((), kinds, since, key, errors["since"])
            return visit.page("govern/events.html", wrong, status=400)
        found = await self._noticed.happenings.newest(
            limit=_MOST, kinds=kinds, key=own, since=first
        )
        template = "govern/events_list.html" if visit.partial else "govern/events.html"
        return visit.page(template, EventsView(found, kinds, since, key))

    async def tools(self, visit: Visit) -> Response:
        """List the tools that were declared."""
        key = only_own(visit.caller, None)
        found = await self._noticed.tools.inventory(limit=_MOST, key=key)
        return visit.page("govern/tools.html", ToolsView(found))

    async def changes(self, visit: Visit) -> Response:
        """List who changed what."""
        actor, action, subject = (_query(visit, name) for name in ("actor", "action", "subject"))
        wanted = AuditFilter(actor or None, action=action or None, subject=subject or None)
        page = await self._noticed.audit.page(
            wanted, before=_number(_query(visit, "before")), limit=_A_PAGE
        )
        return visit.page("govern/changes.html", ChangesView(page, actor, action, subject))


def _query(visit: Visit, name: str) -> str:
    return visit.query(name).strip()[:_LONGEST]


def _number(text: str) -> int | None:
    plain = text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER
    return max(1, int(text)) if plain else None
