"""What model calls used: totals, groups, and how they went over time."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, get_args

from starlette.responses import Response

from turnout.core.clock import Clock
from turnout.core.govern.happenings import Happening
from turnout.core.govern.moments import moment_of
from turnout.core.govern.usage import (
    MOST_GROUPS,
    MOST_ROWS,
    UsageGroup,
    UsageQuery,
    groups_of,
)
from turnout.core.ids import SessionId
from turnout.errors import UsageError
from turnout.gateway.admin.usage import only_own
from turnout.gateway.notices.ports import HappeningsReader, UsageReader
from turnout.web.console.govern.views.charts import Chart
from turnout.web.console.govern.views.usage import (
    GROUP_TITLES,
    GroupLine,
    Tile,
    group_lines,
    requests_chart,
    spend_chart,
    tiles,
)
from turnout.web.console.sections import Page, Section
from turnout.web.console.visits import Visit

__all__ = [
    "UsageFields",
    "UsageFound",
    "UsageView",
    "read_moment",
    "usage_section",
]

_ROWS: Final = 50
_SINCE: Final = "30d"
_LONGEST: Final = 512
_MOST_CAPPED: Final = 20
_READ: Final = 500


@dataclass(frozen=True, slots=True)
class UsageFields:
    """What is counted, as the form says it."""

    by: tuple[UsageGroup, ...]
    since: str
    until: str
    session: str
    key: str
    project: str


@dataclass(frozen=True, slots=True)
class UsageView:
    """All that the page shows."""

    fields: UsageFields
    errors: Mapping[str, str]
    """What is wrong with a field, by its name: nothing is counted then."""
    found: "UsageFound | None" = None
    """None where something is wrong."""
    titles: Mapping[UsageGroup, str] = field(default_factory=lambda: dict(GROUP_TITLES))
    choices: tuple[UsageGroup, ...] = get_args(UsageGroup)

    def error(self, name: str) -> str:
        """Return what is wrong with a field; empty where nothing is."""
        return self.errors.get(name, "")


@dataclass(frozen=True, slots=True)
class UsageFound:
    """What was counted."""

    by: tuple[UsageGroup, ...]
    """What the table is grouped by: sessions are told apart by key."""
    tiles: Sequence[Tile]
    lines: Sequence[GroupLine]
    groups: int
    spend: Chart
    requests: Chart
    left_out: int
    """What is too much for the chart of spend: the cheapest groups of a day."""
    capped: Sequence[Happening]


def usage_section(usage: UsageReader, happenings: HappeningsReader, clock: Clock) -> Section:
    """Return the page: a key sees its own usage, an admin everybody's."""
    pages = _Pages(usage, happenings, clock)
    return Section("Usage", "/usage", pages=(Page("/usage", pages.show),))


class _Pages:
    def __init__(self, usage: UsageReader, happenings: HappeningsReader, clock: Clock) -> None:
        self._usage = usage
        self._happenings = happenings
        self._clock = clock

    async def show(self, visit: Visit) -> Response:
        """Show what is asked for, by default the sessions of the last 30 days."""
        fields, errors = _fields(visit), dict[str, str]()
        query = self._query(visit, fields, errors)
        if errors:
            return visit.page("govern/usage.html", UsageView(fields, errors), status=400)
        found = await self._found(fields, query)
        return visit.page("govern/usage.html", UsageView(fields, errors, found))

    async def _found(self, fields: UsageFields, query: UsageQuery) -> UsageFound:
        sums = replace(query, limit=MOST_ROWS, durations=False)
        over_time = replace(sums, by=_over_time(fields.by, query.key))
        report, split, daily, capped = await asyncio.gather(
            self._usage.usage(query),
            self._usage.usage(over_time),
            self._usage.usage(replace(sums, by=("day",))),
            self._capped(query),
        )
        return UsageFound(
            by=query.by,
            tiles=tiles(report),
            lines=group_lines(report),
            groups=report.groups,
            spend=spend_chart(over_time, split),
            requests=requests_chart(query, daily),
            left_out=max(0, split.groups - len(split.rows)),
            capped=capped,
        )

    def _query(self, visit: Visit, fields: UsageFields, errors: dict[str, str]) -> UsageQuery:
        """Return what is counted; what of the form cannot be read is put among the `errors`."""
        if len(fields.by) > MOST_GROUPS:
            errors["by"] = f"Tick {MOST_GROUPS} at most."
        now, key = self._clock.now(), only_own(visit.caller, fields.key or None)
        return UsageQuery(
            by=groups_of(fields.by, key=key),
            since=read_moment("since", fields.since, now, errors),
            until=read_moment("until", fields.until, now, errors),
            session=SessionId(fields.session) if fields.session else None,
            key=key,
            project=fields.project or None,
            limit=_ROWS,
        )

    async def _capped(self, query: UsageQuery) -> Sequence[Happening]:
        """Return the sessions and runs that a cap has stopped, newest first."""
        newest, key, since = self._happenings.newest, query.key, query.since
        sessions = await newest(limit=_READ, kinds=("session.capped",), key=key, since=since)
        ended = await newest(limit=_READ, kinds=("run.ended",), key=key, since=since)
        runs = [each for each in ended if each.outcome == "capped"]
        found = sorted((*sessions, *runs), key=lambda each: each.at, reverse=True)
        capped = [each for each in found if query.project in (None, each.project)]
        return capped[:_MOST_CAPPED]


def _fields(visit: Visit) -> UsageFields:
    asked = visit.request.query_params.getlist("by")
    known: tuple[UsageGroup, ...] = get_args(UsageGroup)
    by = tuple(name for word in dict.fromkeys(asked) for name in known if name == word)
    return UsageFields(
        by=by or ("session",),
        since=visit.query("since", _SINCE).strip()[:_LONGEST],
        until=visit.query("until").strip()[:_LONGEST],
        session=visit.query("session").strip()[:_LONGEST],
        key=visit.query("key").strip()[:_LONGEST],
        project=visit.query("project").strip()[:_LONGEST],
    )


def _over_time(asked: tuple[UsageGroup, ...], key: str | None) -> tuple[UsageGroup, ...]:
    """Return what the chart of spend is grouped by: the first that is asked for, within days."""
    first: UsageGroup = next((name for name in asked if name != "day"), "model")
    return ("day", *groups_of((first,), key=key))


def read_moment(name: str, text: str, now: datetime, errors: dict[str, str]) -> datetime | None:
    """Return the moment that a field of a form says; None: it is empty, or among the `errors`."""
    try:
        return moment_of(text, now) if text else None
    except UsageError as error:
        errors[name] = f"{error.message} {error.mend}"
        return None
