"""What model calls used: totals, groups, and how they went over time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    "UsageView",
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
    titles: dict[UsageGroup, str]
    choices: tuple[UsageGroup, ...] = get_args(UsageGroup)


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
        fields = _fields(visit)
        query = self._query(visit, fields)
        report = await self._usage.usage(query)
        over_time = replace(query, by=_over_time(fields.by, query.key), limit=MOST_ROWS)
        split = await self._usage.usage(over_time)
        daily = await self._usage.usage(replace(query, by=("day",), limit=MOST_ROWS))
        shown = UsageView(
            fields=fields,
            by=query.by,
            tiles=tiles(report),
            lines=group_lines(report),
            groups=report.groups,
            spend=spend_chart(over_time, split),
            requests=requests_chart(query, daily),
            left_out=max(0, split.groups - len(split.rows)),
            capped=await self._capped(query),
            titles=dict(GROUP_TITLES),
        )
        return visit.page("govern/usage.html", shown)

    def _query(self, visit: Visit, fields: UsageFields) -> UsageQuery:
        now, key = self._clock.now(), only_own(visit.caller, fields.key or None)
        return UsageQuery(
            by=groups_of(fields.by, key=key),
            since=_moment(fields.since, now),
            until=_moment(fields.until, now),
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
    if len(by) > MOST_GROUPS:
        raise UsageError(f"Usage is grouped by {MOST_GROUPS} things at most.")
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


def _moment(text: str, now: datetime) -> datetime | None:
    return moment_of(text, now) if text else None
