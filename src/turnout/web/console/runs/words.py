"""What the rows of a run's story say."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal

from turnout.core.events import (
    ApprovalAsked,
    ApprovalGiven,
    AttemptChosen,
    AttemptStarted,
    CheckpointMade,
    ConnectionsAsked,
    Entry,
    Event,
    Explained,
    HistoryCondensed,
    LoopEnded,
    ModelCallDone,
    ModelCallFailed,
    ModelCallIntended,
    Notice,
    PatchMade,
    PlanMade,
    PlanUpdated,
    ResourcesUsed,
    Reviewed,
    RunEnded,
    RunResumed,
    RunStarted,
    SpendCorrected,
    StepStarted,
    TestsRan,
    ToolCallDone,
    ToolCallIntended,
    VerdictGiven,
    WorkspaceReady,
)
from turnout.core.messages import SystemMessage, UserMessage
from turnout.core.money import format_usd
from turnout.core.runs import Outcome, Patch, TestReport, VerdictName
from turnout.web.console.durations import seconds_text
from turnout.web.console.hostile import excerpt

__all__ = ["Row", "RowKind", "Tone", "call_answered", "call_failed", "row_of", "tool_answered"]

RowKind = Literal["step", "call", "tool", "mark"]
"""mark: something that happened beside the steps."""

Tone = Literal["", "good", "bad", "warn", "info"]

_NOTE: Final = 240
_VERDICTS: Final[Mapping[VerdictName, Tone]] = {
    "resolved": "good",
    "no_regression": "good",
    "not_resolved": "bad",
    "tests_touched": "warn",
}
_OUTCOMES: Final[Mapping[Outcome, Tone]] = {
    "failed": "bad",
    "refused": "bad",
    "capped": "warn",
    "stuck": "warn",
    "step_limit": "warn",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the story; its texts are as they came, but short."""

    seq: int
    """Place of the entry that began it."""
    at: datetime
    kind: RowKind
    title: str
    changed: int
    """Place of the newest entry that it tells of."""
    tone: Tone = ""
    note: str = ""
    facts: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    """What is out of the ordinary: `fallback`, `nudge`, `truncated` and the like."""
    details: tuple[int, ...] = ()
    """Places of the entries that say all of it."""
    open: bool = False
    """Whether it is under way."""
    request: str = ""
    """Id of the request of a model call that was answered."""


def row_of(entry: Entry) -> Row | None:
    """Return the row that an entry begins; None for one that tells nothing of its own."""
    event = entry.event
    match event:
        case StepStarted():
            facts = (f"for {event.objective}",)
            return _row(entry, f"Step {event.step} · {event.kind}", kind="step", facts=facts)
        case ModelCallIntended():
            return _call(entry, event)
        case ToolCallIntended(call=call):
            note, details = _short(call.arguments), (entry.seq,)
            row = _row(entry, call.name, kind="tool", note=note, details=details)
            return replace(row, open=True)
        case RunStarted() | RunResumed() | WorkspaceReady() | Notice() | AttemptStarted():
            return _beginning(entry, event)
        case AttemptChosen() | LoopEnded() | RunEnded() | VerdictGiven() | PatchMade():
            return _ending(entry, event)
        case TestsRan() | Reviewed() | ApprovalAsked() | ApprovalGiven():
            return _judging(entry, event)
        case _:
            return _aside(entry, event)


def call_answered(entry: Entry, done: ModelCallDone, row: Row | None) -> Row:
    """Return the row of a model call with its answer."""
    routing, usage = done.routing, done.usage
    cached = usage.cache_read_input_tokens
    read = f"{usage.input_tokens:,} tokens in" + (f" ({cached:,} cached)" if cached else "")
    cost = "unpriced" if routing.cost_micros is None else format_usd(routing.cost_micros)
    happened = {
        "fallback": routing.fallback,
        "cut off": done.finish_reason == "length",
        "filtered": done.finish_reason == "content_filter",
    }
    base = row or _row(entry, "", kind="call")
    return replace(
        base,
        title=f"{routing.model}",
        changed=entry.seq,
        note=_short(routing.reason),
        facts=(
            done.kind,
            read,
            f"{usage.output_tokens:,} out",
            cost,
            seconds_text(done.latency_ms / 1_000),
        ),
        marks=(*base.marks, *(name for name, so in happened.items() if so)),
        details=(*base.details, entry.seq),
        open=False,
        request=done.request_id,
    )


def call_failed(entry: Entry, failed: ModelCallFailed, row: Row | None) -> Row:
    """Return the row of a model call that got no answer."""
    base = row or _row(entry, "", kind="call")
    status = "no answer" if failed.status is None else f"status {failed.status}"
    return replace(
        base,
        title="Model call failed",
        changed=entry.seq,
        tone="bad",
        note=_short(failed.error),
        facts=(failed.kind, status, failed.code),
        details=(*base.details, entry.seq),
        open=False,
    )


def tool_answered(
    entry: Entry, done: ToolCallDone, row: Row | None, *, refused: bool = False
) -> Row:
    """Return the row of a tool call with its result; `refused`: by a person."""
    base = row or _row(entry, "a tool", kind="tool")
    result = done.result
    size = len(result.content) + result.elided_chars
    happened = {
        "refused": refused,
        "error": result.is_error and not refused,
        "truncated": bool(result.elided_chars or result.full),
        "unsure": result.unsure,
        "done": result.ends_run,
    }
    return replace(
        base,
        changed=entry.seq,
        tone="warn" if refused else "bad" if result.is_error else "",
        facts=(seconds_text(done.seconds), f"{size:,} characters"),
        marks=(*base.marks, *(name for name, so in happened.items() if so)),
        details=(*base.details, entry.seq),
        open=False,
    )


def _call(entry: Entry, intended: ModelCallIntended) -> Row:
    opening = any(isinstance(message, SystemMessage) for message in intended.messages)
    nudged = any(isinstance(message, UserMessage) for message in intended.messages)
    conversation = "" if intended.conversation == "main" else intended.conversation
    facts = tuple(filter(None, (intended.kind, conversation, intended.tool)))
    row = _row(entry, "Model call", kind="call", facts=facts, details=(entry.seq,))
    return replace(row, marks=("nudge",) if nudged and not opening else (), open=True)


def _beginning(
    entry: Entry, event: RunStarted | RunResumed | WorkspaceReady | Notice | AttemptStarted
) -> Row:
    match event:
        case RunStarted():
            facts = (f"from {event.base_commit[:12]}", f"strategy {event.strategy}")
            return _row(entry, "Begun", facts=facts)
        case RunResumed():
            facts = (f"segment {event.segment}", event.worker)
            return _row(entry, "The work goes on", tone="info", facts=facts)
        case WorkspaceReady():
            facts = (event.isolation, seconds_text(event.seconds))
            note = f"Tests: {event.test_command or 'none found'}"
            return _row(
                entry, "Workspace ready", note=_short(note), facts=facts, details=(entry.seq,)
            )
        case Notice():
            tone: Tone = "warn" if event.level == "warning" else ""
            long = len(event.text) > _NOTE
            details = (entry.seq,) if long else ()
            return _row(entry, "Note", tone=tone, note=_short(event.text), details=details)
        case AttemptStarted():
            facts = (f"of {event.of}", f"for {event.objective}")
            title, note = f"Attempt {event.attempt}", _short(event.lessons)
            return _row(entry, title, tone="info", note=note, facts=facts)


def _ending(
    entry: Entry, event: AttemptChosen | LoopEnded | RunEnded | VerdictGiven | PatchMade
) -> Row:
    match event:
        case AttemptChosen():
            title = f"Attempt {event.attempt} is the result"
            return _row(entry, title, tone="good", note=_short(event.reason))
        case LoopEnded():
            tone = _OUTCOMES.get(event.outcome, "")
            title = f"The agent stops: {event.outcome.replace('_', ' ')}"
            details = (entry.seq,) if event.answer else ()
            return _row(entry, title, tone=tone, note=_short(event.reason), details=details)
        case RunEnded():
            tone = _OUTCOMES.get(event.outcome, "info")
            title = f"Ended: {event.outcome.replace('_', ' ')}"
            return _row(entry, title, tone=tone, note=_short(event.reason))
        case VerdictGiven(verdict=verdict):
            title = f"Verdict: {verdict.name.replace('_', ' ')}"
            return _row(
                entry, title, tone=_VERDICTS.get(verdict.name, ""), note=_short(verdict.detail)
            )
        case PatchMade(patch=patch):
            return _row(entry, "Patch" if patch else "No patch", facts=_changes(patch))


def _judging(entry: Entry, event: TestsRan | Reviewed | ApprovalAsked | ApprovalGiven) -> Row:
    match event:
        case TestsRan(report=report):
            tone: Tone = "good" if report.ok else "warn" if event.phase == "before" else "bad"
            return _row(
                entry,
                f"Tests {event.phase}",
                tone=tone,
                note=_short(report.command),
                facts=_counts(report),
                details=(entry.seq,),
            )
        case Reviewed():
            title = "Review blocks the change" if event.blocked else "Review lets it pass"
            return _row(
                entry,
                title,
                tone="bad" if event.blocked else "good",
                note=_short(event.summary),
                facts=(_many(len(event.notes), "note"),),
                details=(entry.seq,),
            )
        case ApprovalAsked(call=call):
            note = f"{call.name} {call.arguments[:_NOTE]}"
            return _row(
                entry,
                "Waits for approval",
                tone="warn",
                note=_short(note),
                facts=(event.rule,),
                details=(entry.seq,),
            )
        case ApprovalGiven():
            title = f"{'Approved' if event.allowed else 'Rejected'} by {event.by}"
            tone = "good" if event.allowed else "bad"
            return _row(entry, title, tone=tone, note=_short(event.note))


def _aside(entry: Entry, event: Event) -> Row | None:
    seq = (entry.seq,)
    match event:
        case PlanMade():
            facts: tuple[str, ...] = (_many(len(event.steps), "item"),) if event.steps else ()
            return _row(
                entry, "Plan", tone="info", note=_short(event.text), facts=facts, details=seq
            )
        case PlanUpdated(states=states):
            done = sum(state == "done" for state in states)
            return _row(entry, f"Plan: {done} of {len(states)} done")
        case HistoryCondensed():
            title = f"Conversation condensed through step {event.through_step}"
            row = _row(entry, title, note=_short(event.text), details=seq)
            return replace(row, marks=("condensed",))
        case ConnectionsAsked(connections=connections):
            refused = sum(not each.allowed for each in connections)
            hosts = ", ".join(dict.fromkeys(f"{c.host}:{c.port}" for c in connections))
            facts = (f"{len(connections)} asked", *((f"{refused} refused",) if refused else ()))
            tone: Tone = "warn" if refused else ""
            return _row(
                entry, "Connections", tone=tone, note=_short(hosts), facts=facts, details=seq
            )
        case Explained(text=text):
            return _row(entry, "Explanation", note=_short(text), details=seq)
        case CheckpointMade():
            facts = (f"{event.size_bytes:,} bytes", seconds_text(event.seconds))
            return _row(entry, "Checkpoint", facts=facts)
        case ResourcesUsed():
            cpu = "" if event.cpu_seconds is None else f"{event.cpu_seconds:.1f} CPU s"
            used = tuple(filter(None, (cpu, seconds_text(event.wall_seconds))))
            return _row(entry, "Sandbox", facts=used)
        case SpendCorrected():
            recorded, charged = format_usd(event.recorded), format_usd(event.charged)
            return _row(entry, "Spend corrected", facts=(f"{recorded} → {charged}",))
        case _:
            return None


def _row(
    entry: Entry,
    title: str,
    *,
    kind: RowKind = "mark",
    tone: Tone = "",
    note: str = "",
    facts: tuple[str, ...] = (),
    details: tuple[int, ...] = (),
) -> Row:
    title = title[:_NOTE]
    return Row(entry.seq, entry.at, kind, title, entry.seq, tone, note, facts, details=details)


def _short(text: str) -> str:
    """Return the beginning of a text in one line."""
    part = excerpt(text.strip(), lines=4, width=_NOTE, chars=_NOTE)
    line = " ".join(part.text.split())
    return f"{line} …" if part.left_out and not line.endswith("…") else line


def _changes(patch: Patch) -> tuple[str, ...]:
    added = sum(change.added_lines or 0 for change in patch.files)
    deleted = sum(change.deleted_lines or 0 for change in patch.files)
    named = _many(len(patch.files), "file")
    return (named, f"+{added:,} −{deleted:,}") if patch else ()


def _many(count: int, name: str) -> str:
    return f"{count:,} {name}{'s' * (count != 1)}"


def _counts(report: TestReport) -> tuple[str, ...]:
    if not report.found:
        return ("no tests found",)
    late = ("timed out",) if report.timed_out else ()
    counts = (f"{len(report.passed):,} passed", f"{len(report.failed):,} failed")
    return (*counts, *late, seconds_text(report.seconds))
