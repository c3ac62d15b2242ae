"""What model calls used, added up by what they have in common."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Literal

from turnout.core.ids import SessionId
from turnout.core.json import JsonObject
from turnout.core.money import Micros

__all__ = [
    "MOST_GROUPS",
    "MOST_ROWS",
    "MachineFigures",
    "UsageFigures",
    "UsageGroup",
    "UsageQuery",
    "UsageReport",
    "UsageRow",
    "groups_of",
    "usage_object",
]

UsageGroup = Literal[
    "session",
    "key",
    "project",
    "policy",
    "model",
    "deployment",
    "objective",
    "task",
    "call_kind",
    "shape",
    "day",
]
"""What requests are grouped by. A day is one of UTC; a request that nobody answered has the
deployment that was asked last, and no model."""

_NOTHING = Micros(0)
MOST_GROUPS = 3
"""That may be asked for."""
MOST_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class UsageQuery:
    """Which requests are counted, and how they are grouped."""

    by: tuple[UsageGroup, ...] = ("session",)
    """At least one, each once."""
    since: datetime | None = None
    """The first moment that counts."""
    until: datetime | None = None
    """The first moment that counts no more."""
    session: SessionId | None = None
    key: str | None = None
    project: str | None = None
    limit: int = 20
    """Rows at most, 1 to `MOST_ROWS`; the total counts every request all the same."""
    durations: bool = True
    """Whether percentiles are worked out, which takes longer than all sums."""


@dataclass(frozen=True, slots=True)
class UsageFigures:
    """Sums and percentiles over some requests.

    A percentile is by nearest rank: the smallest value that so many of the values do not exceed.
    """

    requests: int = 0
    refused: int = 0
    """By the gateway itself: key, policy, caps, a request that is wrong."""
    failed: int = 0
    truncated: int = 0
    cancelled: int = 0
    """By the client."""
    unknown: int = 0
    """Under way when the gateway died: whether they were answered and paid for is not known."""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """The part of `input_tokens` that a prompt cache answered."""
    cost: Micros = _NOTHING
    """Of the requests with a known price."""
    unpriced: int = 0
    """Requests that were served at an unknown price, or of which nothing is known."""
    fallbacks: int = 0
    """Requests that another deployment than the first choice answered."""
    repaired: int = 0
    """Requests in whose answer tool calls were mended."""
    latency_p50_ms: int | None = None
    """Of answers that a model gave whole; None where there are none."""
    latency_p95_ms: int | None = None
    ttft_p50_ms: int | None = None
    """Time to first token, of streams; None where there are none."""
    ttft_p95_ms: int | None = None

    @property
    def errors(self) -> int:
        """Requests that ended otherwise than asked, but for those that the client gave up."""
        return self.refused + self.failed + self.truncated + self.unknown


@dataclass(frozen=True, slots=True)
class MachineFigures:
    """What the sandboxes of runs took; model calls aside."""

    segments: int = 0
    """How often a worker's part of a run has told of it."""
    cpu_seconds: float = 0.0
    memory_mib_seconds: float = 0.0
    peak_memory_bytes: int | None = None
    cost: Micros = _NOTHING
    """At the rates that were set at the time."""


@dataclass(frozen=True, slots=True)
class UsageRow:
    """One group of requests."""

    group: tuple[str | None, ...]
    """A value for each of the query's `by`; None where the requests have none."""
    figures: UsageFigures


@dataclass(frozen=True, slots=True)
class UsageReport:
    """The groups, the most expensive first, and all of them together."""

    rows: tuple[UsageRow, ...]
    total: UsageFigures
    groups: int
    """How many there are, with those beyond the limit."""
    machines: MachineFigures = field(default_factory=MachineFigures)
    """Of the same keys, projects, sessions and time; a session of ours is a run."""


def groups_of(asked: Iterable[UsageGroup], *, key: str | None) -> tuple[UsageGroup, ...]:
    """Return what usage is grouped by where this was asked for.

    Session ids are a key's own: unless `key` says which one is meant, two keys that use the same
    id have two sessions.
    """
    groups = list(dict.fromkeys(asked))
    if key is None and "session" in groups and "key" not in groups:
        groups.insert(groups.index("session") + 1, "key")
    return tuple(groups)


def usage_object(query: UsageQuery, report: UsageReport) -> JsonObject:
    """Return a report as JSON; amounts are `cost_micros`."""
    return {
        "by": list(query.by),
        "since": query.since.isoformat() if query.since else None,
        "until": query.until.isoformat() if query.until else None,
        "groups": report.groups,
        "rows": [
            {
                "group": dict(zip(query.by, row.group, strict=True)),
                **_figures_object(row.figures),
            }
            for row in report.rows
        ],
        "total": _figures_object(report.total),
        "sandboxes": {
            "segments": report.machines.segments,
            "cpu_seconds": report.machines.cpu_seconds,
            "memory_mib_seconds": report.machines.memory_mib_seconds,
            "peak_memory_bytes": report.machines.peak_memory_bytes,
            "cost_micros": report.machines.cost,
        },
    }


def _figures_object(figures: UsageFigures) -> JsonObject:
    numbers = asdict(figures)
    return {
        "requests": figures.requests,
        "errors": figures.errors,
        "cost_micros": numbers.pop("cost"),
        **numbers,
    }
