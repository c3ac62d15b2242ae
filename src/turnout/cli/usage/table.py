"""Usage as a table, and as bars where somebody looks at it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from turnout.cli.terminal import plural, safe
from turnout.core.govern.usage import (
    MachineFigures,
    UsageFigures,
    UsageQuery,
    UsageReport,
    UsageRow,
)
from turnout.core.money import format_usd

__all__ = ["usage_text"]

_BAR: Final = 12
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_FEWEST: Final = 5
"""Columns that are worth more than a bar."""
_LONGEST_NAME: Final = 40
_GAP: Final = "  "
_MINUTE: Final = 60
_HOUR: Final = 3_600


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    cell: Callable[[UsageFigures], str]
    rank: int
    """Where a terminal is too narrow, the columns of the highest rank are left out first."""


def usage_text(query: UsageQuery, report: UsageReport, *, width: int | None) -> str:
    """Return a report for people; `width` is that of a terminal, None for a pipe or a file."""
    if not report.total.requests:
        return "There were no such requests. `--since` reaches further back."
    rows = list(report.rows)
    if query.by == ("day",):
        rows.sort(key=lambda row: row.group)
    lines = _fitting(query, rows, report.total, width)
    return "\n".join([line.rstrip() for line in lines] + _notes(query, report))


def _fitting(
    query: UsageQuery, rows: Sequence[UsageRow], total: UsageFigures, width: int | None
) -> list[str]:
    """Return the table as it fits, with bars where a terminal has room for the main columns."""
    columns = list(_COLUMNS)
    lines = _lines(query, rows, columns, total)
    if width is None:
        return lines
    with_bar = width - len(_GAP) - _BAR
    while len(columns) > 1 and max(map(len, lines)) > (
        with_bar if len(columns) > _FEWEST else width
    ):
        columns.remove(max(columns, key=lambda column: column.rank))
        lines = _lines(query, rows, columns, total)
    return _with_bars(lines, rows) if max(map(len, lines)) <= with_bar else lines


def _lines(
    query: UsageQuery,
    rows: Sequence[UsageRow],
    columns: Sequence[_Column],
    total: UsageFigures,
) -> list[str]:
    """Return title, rows and total, their cells below one another."""
    head = [name.replace("_", " ") for name in query.by]
    table = [
        [*head, *(column.title for column in columns)],
        *([*_names(row), *(column.cell(row.figures) for column in columns)] for row in rows),
        ["total", *("" for _ in head[1:]), *(column.cell(total) for column in columns)],
    ]
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    return [
        _GAP.join(
            cell.ljust(size) if place < len(head) else cell.rjust(size)
            for place, (cell, size) in enumerate(zip(line, widths, strict=True))
        )
        for line in table
    ]


def _names(row: UsageRow) -> list[str]:
    shown = ["-" if value is None else safe(" ".join(value.split())) for value in row.group]
    return [
        name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…" for name in shown
    ]


def _with_bars(lines: Sequence[str], rows: Sequence[UsageRow]) -> list[str]:
    """Put a bar behind each row: of its cost, or of its requests where nothing has one."""
    costs = [row.figures.cost for row in rows]
    sizes = costs if any(costs) else [row.figures.requests for row in rows]
    bars = [_bar(size, max(sizes)) for size in sizes]
    title = "cost" if any(costs) else "requests"
    ends = [title, *bars, ""]
    return [f"{line}{_GAP}{end}" for line, end in zip(lines, ends, strict=True)]


def _bar(size: int, most: int) -> str:
    eighths = size * _BAR * 8 // most if most else 0
    whole, part = divmod(eighths, 8)
    return "█" * whole + _EIGHTHS[part].strip()


def _notes(query: UsageQuery, report: UsageReport) -> list[str]:
    notes = [""]
    if query.since is not None:
        until = f" until {query.until:%Y-%m-%d %H:%M}" if query.until else ""
        notes.append(f"Since {query.since:%Y-%m-%d %H:%M}{until}, UTC.")
    if report.groups > len(report.rows):
        notes.append(f"{len(report.rows)} of {report.groups} groups: --limit shows more.")
    if report.total.unpriced:
        served = plural(report.total.unpriced, "request")
        notes.append(f"* Without {served} at an unknown price.")
    if report.machines.segments:
        notes.append(_machines(report.machines))
    return notes if len(notes) > 1 else []


def _machines(figures: MachineFigures) -> str:
    memory = _long(figures.memory_mib_seconds / 1_024, "GiB ")
    return (
        f"Sandboxes of runs: {_long(figures.cpu_seconds, 'CPU ')}, "
        f"{memory} of memory, {format_usd(figures.cost)}."
    )


def _long(seconds: float, what: str) -> str:
    """Return `1.50 CPU hours`, `2.5 CPU minutes`, `0.42 CPU seconds`."""
    if seconds >= _HOUR:
        return f"{seconds / _HOUR:.2f} {what}hours"
    if seconds >= _MINUTE:
        return f"{seconds / _MINUTE:.1f} {what}minutes"
    return f"{seconds:.2f} {what}seconds"


def _count(number: int) -> str:
    """Return `999`, `12.3k`, `4.5M`."""
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return str(number)


def _duration(milliseconds: int | None) -> str:
    if milliseconds is None:
        return "-"
    return f"{milliseconds} ms" if milliseconds < 1_000 else f"{milliseconds / 1_000:.1f} s"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f}%" if part and whole else "-"


def _cost(figures: UsageFigures) -> str:
    return f"{format_usd(figures.cost)}{'*' if figures.unpriced else ''}"


_COLUMNS: Final = (
    _Column("requests", lambda f: str(f.requests), 0),
    _Column("errors", lambda f: str(f.errors or "-"), 2),
    _Column("in", lambda f: _count(f.input_tokens), 5),
    _Column("out", lambda f: _count(f.output_tokens), 6),
    _Column("cached", lambda f: _share(f.cached_tokens, f.input_tokens), 9),
    _Column("cost", _cost, 1),
    _Column("p50", lambda f: _duration(f.latency_p50_ms), 3),
    _Column("p95", lambda f: _duration(f.latency_p95_ms), 8),
    _Column("ttft p50", lambda f: _duration(f.ttft_p50_ms), 4),
    _Column("ttft p95", lambda f: _duration(f.ttft_p95_ms), 7),
    _Column("fallback", lambda f: _share(f.fallbacks, f.requests), 10),
    _Column("repaired", lambda f: _share(f.repaired, f.requests), 11),
)
