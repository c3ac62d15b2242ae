"""Spans of traces, as values: what took how long, within what.

Ids are digests of what a span is of, so that whoever continues a run, or serves one of its calls,
knows the span above its own without having been told.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Final, Literal, NamedTuple, Protocol

from turnout.core.ids import RunId

__all__ = [
    "Attribute",
    "Span",
    "SpanKind",
    "SpanSink",
    "TraceParent",
    "parse_traceparent",
    "run_span",
    "span_id_of",
    "trace_id_of",
]

Attribute = str | bool | int | float | tuple[str, ...]

SpanKind = Literal["internal", "client", "server"]

_TRACEPARENT: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(?:-.*)?"
)
_LONGEST: Final = 512


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took time, and has ended."""

    trace_id: str
    """32 hexadecimal digits."""
    span_id: str
    """16 hexadecimal digits."""
    parent_id: str
    """Of the span that it is part of; empty for the first of a trace."""
    name: str
    kind: SpanKind
    start: datetime
    end: datetime
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    error: str = ""
    """What kind of error it ended with; empty where with none."""

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.end - self.start).total_seconds()


class SpanSink(Protocol):
    """Whoever wants to know of spans."""

    def take(self, spans: Sequence[Span]) -> None:
        """Be told of spans that have ended; returns at once and never fails."""
        ...


class TraceParent(NamedTuple):
    """Where a request belongs in the trace of who sent it."""

    trace_id: str
    span_id: str

    def header(self) -> str:
        """Return the value of the header `traceparent`, of a trace that is kept."""
        return f"00-{self.trace_id}-{self.span_id}-01"


def parse_traceparent(text: str) -> TraceParent | None:
    """Return what a `traceparent` says; None where it says nothing that can be used."""
    found = _TRACEPARENT.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    return None if found is None else TraceParent(found[1], found[2])


def trace_id_of(name: str) -> str:
    """Return the id of the trace of a run or request."""
    return sha256(f"trace {name}".encode(errors="surrogatepass")).hexdigest()[:32]


def span_id_of(name: str, what: str) -> str:
    """Return the id of a part of a run or request; `what` names it within."""
    return sha256(f"span {name} {what}".encode(errors="surrogatepass")).hexdigest()[:16]


def run_span(run_id: RunId, what: str = "") -> TraceParent:
    """Return where a part of a run is in its trace: `step N`, or a call's idempotency key.

    Without `what` it is the run itself.
    """
    return TraceParent(trace_id_of(run_id), span_id_of(run_id, what))
