"""Usage: totals, groups and how they went over time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from turnout.core.govern.usage import UsageFigures, UsageGroup, UsageQuery, UsageReport
from turnout.core.money import Micros, format_usd
from turnout.web.console.govern.views.charts import Chart, Series, columns_chart, fold_series
from turnout.web.console.govern.views.words import milliseconds_text, share_text, whole_text

__all__ = [
    "GROUP_TITLES",
    "GroupLine",
    "Tile",
    "group_lines",
    "requests_chart",
    "spend_chart",
    "tiles",
]

_MOST_SERIES: Final = 6
_DAYS_SHOWN: Final = 62
"""Days up to which each is a column; beyond them a week is one."""
_WEEK: Final = 7
_NONE: Final = "none"

GROUP_TITLES: Final[Mapping[UsageGroup, str]] = {
    "session": "Session",
    "key": "Key",
    "project": "Project",
    "policy": "Policy",
    "model": "Model",
    "deployment": "Deployment",
    "objective": "Objective",
    "task": "Task kind",
    "call_kind": "Call kind",
    "shape": "API",
    "day": "Day",
}
"""What each grouping is called."""


@dataclass(frozen=True, slots=True)
class Tile:
    """One total."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class GroupLine:
    """One group of requests."""

    group: tuple[str, ...]
    """A value for each grouping; empty where the requests have none."""
    figures: UsageFigures
    share: float
    """Of the cost of all groups, 0 to 100; of their requests where nothing has a price."""

    @property
    def p50(self) -> str:
        """How long half of the whole answers took at most; empty where there are none."""
        return _answered_in(self.figures.latency_p50_ms)

    @property
    def p95(self) -> str:
        """The same of all but the slowest twentieth."""
        return _answered_in(self.figures.latency_p95_ms)


def tiles(report: UsageReport) -> Sequence[Tile]:
    """Return the totals of a report."""
    total, machines = report.total, report.machines
    unpriced = f"{total.unpriced:,} unpriced" if total.unpriced else ""
    cached = share_text(total.cached_tokens / total.input_tokens) if total.input_tokens else "0 %"
    found = [
        Tile("Spend", format_usd(total.cost), unpriced),
        Tile("Requests", f"{total.requests:,}", f"{total.errors:,} errors"),
        Tile("Input tokens", f"{total.input_tokens:,}", f"{cached} from caches"),
        Tile("Output tokens", f"{total.output_tokens:,}"),
        Tile("Latency p50", _time(total.latency_p50_ms), f"p95 {_time(total.latency_p95_ms)}"),
        Tile("First token p50", _time(total.ttft_p50_ms), _streamed(total.ttft_p95_ms)),
    ]
    if machines.segments:
        cost = format_usd(machines.cost)
        note = f"{cost} at the rates set"
        found.append(Tile("Sandboxes", f"{machines.cpu_seconds:,.0f} CPU s", note))
    return found


def group_lines(report: UsageReport) -> Sequence[GroupLine]:
    """Return the groups of a report in its order, each with its share."""
    total = report.total

    def share(figures: UsageFigures) -> float:
        if total.cost:
            return round(100 * figures.cost / total.cost, 2)
        return round(100 * figures.requests / max(1, total.requests), 2)

    return tuple(
        GroupLine(tuple(value or "" for value in row.group), row.figures, share(row.figures))
        for row in report.rows
    )


def spend_chart(query: UsageQuery, report: UsageReport) -> Chart:
    """Return what each group cost over time.

    `report` is one by day and something else; groups that cost little are drawn as one.
    """
    by, spans = query.by[1:], _spans(query, report)
    groups: dict[str, dict[date, float]] = {}
    for row in report.rows:
        day, name = _day(row.group[0]), " · ".join(value or _NONE for value in row.group[1:])
        if day is not None and row.figures.cost:
            at = groups.setdefault(name, {})
            at[day] = at.get(day, 0.0) + row.figures.cost
    series = [Series(name, _sums(spans, values)) for name, values in groups.items()]
    title = f"Spend by {' and '.join(GROUP_TITLES[name].lower() for name in by)}"
    return columns_chart(
        _over(title, spans), _names(spans), fold_series(series, most=_MOST_SERIES), _usd
    )


def requests_chart(query: UsageQuery, report: UsageReport) -> Chart:
    """Return how requests ended over time; the report is one by day."""
    spans = _spans(query, report)
    good: dict[date, float] = {}
    wrong: dict[date, float] = {}
    left: dict[date, float] = {}
    for row in report.rows:
        day, figures = _day(row.group[0]), row.figures
        if day is not None:
            good[day] = figures.requests - figures.errors - figures.cancelled
            left[day], wrong[day] = figures.cancelled, figures.errors
    series = [
        Series("answered", _sums(spans, good), "good"),
        Series("cancelled", _sums(spans, left), "dim"),
        Series("errors", _sums(spans, wrong), "bad"),
    ]
    return columns_chart(_over("Requests", spans), _names(spans), series, whole_text, whole=True)


@dataclass(frozen=True, slots=True)
class _Span:
    first: date
    last: date


def _spans(query: UsageQuery, report: UsageReport) -> Sequence[_Span]:
    """Return the days, or weeks, from the first that counts to the last, none left out."""
    seen = [day for row in report.rows if (day := _day(row.group[0])) is not None]
    if not seen:
        return ()
    first = query.since.astimezone(UTC).date() if query.since else min(seen)
    last = max(seen) if query.until is None else _last_day(query.until)
    first, last = min([first, *seen]), max([last, *seen])
    days = 1 if (last - first).days < _DAYS_SHOWN else _WEEK
    return tuple(_cut(first, last, days))


def _cut(first: date, last: date, days: int) -> Iterator[_Span]:
    while first <= last:
        yield _Span(first, min(last, first + timedelta(days=days - 1)))
        first += timedelta(days=days)


def _last_day(until: datetime) -> date:
    return (until.astimezone(UTC) - timedelta(microseconds=1)).date()


def _over(title: str, spans: Sequence[_Span]) -> str:
    """Return a title with the time: what lies within one day or week is one column."""
    return f"{title}, {_names(spans)[0]}" if len(spans) == 1 else f"{title} over time"


def _names(spans: Sequence[_Span]) -> Sequence[str]:
    def name(span: _Span) -> str:
        first = f"{span.first:%b %d}"
        return first if span.first == span.last else f"{first} to {span.last:%b %d}"

    return [name(span) for span in spans]


def _sums(spans: Sequence[_Span], values: dict[date, float]) -> tuple[float, ...]:
    return tuple(
        sum(value for day, value in values.items() if span.first <= day <= span.last)
        for span in spans
    )


def _day(text: str | None) -> date | None:
    return None if text is None else date.fromisoformat(text)


def _usd(value: float) -> str:
    return format_usd(Micros(round(value)))


def _streamed(slow: int | None) -> str:
    """Return what is said beside the first token, which an answer in one piece does not have."""
    return "no answer was streamed" if slow is None else f"p95 {_time(slow)}, streamed answers"


def _answered_in(value: int | None) -> str:
    return "" if value is None else milliseconds_text(value)


def _time(value: int | None) -> str:
    return "–" if value is None else milliseconds_text(value)
