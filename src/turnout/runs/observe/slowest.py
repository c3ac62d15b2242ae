"""Where the time of a run went, step by step."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from turnout.core.events import Entry, RunEnded
from turnout.core.observe.spans import Attribute, Span
from turnout.runs.observe.timeline import spans_of

__all__ = ["PARTS", "Part", "RunTime", "StepTime", "times_of"]

Part = Literal["model", "tools", "checkpoint", "approval", "workspace", "tests", "rest"]
"""What time goes to. `rest` is everything else: the loop itself, what it commits to the record,
and the time in which no worker had the run."""

PARTS: Final[tuple[Part, ...]] = (
    "model",
    "tools",
    "checkpoint",
    "approval",
    "workspace",
    "tests",
    "rest",
)

_PART_OF: Final[dict[str, Part]] = {
    "chat": "model",
    "execute_tool": "tools",
    "checkpoint": "checkpoint",
    "approval": "approval",
    "workspace": "workspace",
    "tests": "tests",
}
"""By the first word of a span's name."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """A step, and where its time went."""

    step: int
    kind: str
    seconds: float
    parts: dict[Part, float]
    """Seconds of each; what took none is left out."""
    tools: tuple[str, ...] = ()
    """Names of the tools that were called, in order."""
    model: str = ""
    """Which answered; empty where none did."""


@dataclass(frozen=True, slots=True)
class RunTime:
    """A run, and where its time went."""

    seconds: float
    """From its start to its end, or to the newest entry."""
    parts: dict[Part, float]
    """Seconds of each; what took none is left out."""
    steps: tuple[StepTime, ...]
    """The slowest first, of equal ones the earlier."""


@dataclass(slots=True)
class _Sum:
    parts: dict[Part, float] = field(default_factory=dict)
    tools: list[str] = field(default_factory=list)
    model: str = ""

    def add(self, part: Part, span: Span) -> None:
        self.parts[part] = self.parts.get(part, 0.0) + span.seconds
        if part == "tools":
            self.tools.append(_text(span.attributes.get("gen_ai.tool.name")))
        self.model = _text(span.attributes.get("gen_ai.response.model")) or self.model


def times_of(entries: Sequence[Entry]) -> RunTime:
    """Return where the time of a record went; `ValueError` for one without entries."""
    if not entries:
        raise ValueError("a record without entries")
    whole = _Sum()
    sums: dict[object, _Sum] = {}
    steps: list[Span] = []
    for span in spans_of(entries[0].run_id, entries):
        first = span.name.partition(" ")[0]
        if first == "step":
            steps.append(span)
        elif (part := _PART_OF.get(first)) is not None:
            whole.add(part, span)
            sums.setdefault(span.attributes.get("turnout.step"), _Sum()).add(part, span)
    timed = [_step(span, sums.get(span.attributes["turnout.step"], _Sum())) for span in steps]
    ended = next((each.at for each in entries if isinstance(each.event, RunEnded)), entries[-1].at)
    seconds = (ended - entries[0].at).total_seconds()
    slowest = sorted(timed, key=lambda one: (-one.seconds, one.step))
    return RunTime(seconds, _with_rest(whole.parts, seconds), tuple(slowest))


def _step(span: Span, sums: _Sum) -> StepTime:
    number = span.attributes["turnout.step"]
    return StepTime(
        number if isinstance(number, int) else 0,
        _text(span.attributes["turnout.step.kind"]),
        span.seconds,
        _with_rest(sums.parts, span.seconds),
        tuple(sums.tools),
        sums.model,
    )


def _with_rest(parts: dict[Part, float], seconds: float) -> dict[Part, float]:
    """Return the parts that took time in their order, and what is left of the whole."""
    rest = max(0.0, seconds - sum(parts.values()))
    known: dict[Part, float] = {**parts, "rest": rest}
    return {part: known[part] for part in PARTS if known.get(part, 0.0) > 0.0}


def _text(value: Attribute | None) -> str:
    return value if isinstance(value, str) else ""
