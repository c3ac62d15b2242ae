"""What earlier segments have put on record of a run: a fold, from which the next one goes on."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from turnout.core.events import (
    ApprovalAsked,
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
    PatchMade,
    PlanMade,
    PlanUpdated,
    ResourcesUsed,
    Reviewed,
    RunEnded,
    RunResumed,
    RunStarted,
    StepStarted,
    TestsRan,
    ToolCallDone,
    ToolCallIntended,
    VerdictGiven,
    WorkspaceReady,
)
from turnout.core.ids import ToolCallId
from turnout.core.money import Micros
from turnout.core.runs import Patch, TestReport

__all__ = ["Past", "PastAttempt", "past_of"]

_FREE: Final = Micros(0)
_WORK: Final = (
    StepStarted,
    ModelCallIntended,
    ModelCallDone,
    ModelCallFailed,
    ToolCallIntended,
    ToolCallDone,
    PlanMade,
    PlanUpdated,
    HistoryCondensed,
    ApprovalAsked,
)


@dataclass(slots=True)
class PastAttempt:
    """An attempt as far as it came."""

    number: int
    lessons: str
    spent_before: Micros
    """What the run had spent when it began."""
    first_step: int
    work: list[Event] = field(default_factory=list)
    """What its strategy has yielded."""
    checkpoint: CheckpointMade | None = None
    """What its workspace held last."""
    written: set[str] = field(default_factory=set)
    """Tools that had results since then, or since it began."""
    calls: dict[ToolCallId, str] = field(default_factory=dict)
    """Tools by call."""
    end: LoopEnded | None = None
    patch: Patch | None = None
    tests: TestReport | None = None
    """With its patch."""
    review: Reviewed | None = None
    review_step: int | None = None
    """First step of its review, where one was begun."""


@dataclass(slots=True)
class Past:
    """How far a run is; empty for one that nobody has worked on."""

    started: RunStarted | None = None
    segments: int = 0
    in_vain: int = 0
    """Segments in a row that put nothing else on record."""
    ready: WorkspaceReady | None = None
    before: TestReport | None = None
    attempts: list[PastAttempt] = field(default_factory=list)
    chosen: AttemptChosen | None = None
    judged: bool = False
    explained: bool = False
    explain_step: int | None = None
    """Step in which the change is described, where that was begun."""
    ended: bool = False
    step: int = 0
    """Newest step of the work, describing the change aside."""
    spent: Micros = _FREE
    seconds: float = 0.0
    """Wall time of the work, without the waiting for people and for workers."""
    call_failed: bool = False
    """Whether the newest model call came to nothing."""
    steps: set[int] = field(default_factory=set)
    """Steps that were begun."""
    intended: set[str] = field(default_factory=set)
    """Idempotency keys of the model calls that were intended."""
    answered: set[str] = field(default_factory=set)
    """Of those that were answered."""

    def attempt(self, number: int) -> PastAttempt | None:
        """Return an attempt; None where it was not begun."""
        return next((each for each in self.attempts if each.number == number), None)

    def has(self, event: Event) -> bool:
        """Whether a step that is done again has put an event on record before."""
        match event:
            case StepStarted(step=step):
                return step in self.steps
            case ModelCallIntended(idempotency_key=key):
                return key in self.intended
            case ModelCallDone(idempotency_key=key):
                return key in self.answered
            case _:
                return False

    @property
    def opened(self) -> bool:
        """Whether the tests at base were looked at."""
        return self.ready is not None and (
            self.before is not None or self.ready.test_command is None
        )


def past_of(entries: Sequence[Entry]) -> Past:
    """Fold a record, oldest entry first."""
    past = Past()
    at: datetime | None = None
    working = False
    for entry in entries:
        if working and at is not None and not isinstance(entry.event, RunResumed):
            past.seconds += max(0.0, (entry.at - at).total_seconds())
        _apply(past, entry.event)
        working = isinstance(entry.event, _WORK) and not isinstance(entry.event, ApprovalAsked)
        at = entry.at
    return past


def _apply(past: Past, event: Event) -> None:
    past.in_vain = 0 if not isinstance(event, RunResumed) else past.in_vain
    match event:
        case RunStarted():
            past.started, past.segments = event, 1
        case RunResumed(segment=segment):
            past.segments = segment
            past.in_vain += 1
        case WorkspaceReady():
            past.ready = event
        case TestsRan(phase="before", report=report):
            past.before = report
        case AttemptStarted(attempt=number, lessons=lessons):
            past.attempts = [each for each in past.attempts if each.number != number]
            past.attempts.append(_begun(past, number, lessons))
        case AttemptChosen():
            past.chosen = event
        case VerdictGiven():
            past.judged = True
        case Explained():
            past.explained = True
        case RunEnded():
            past.ended = True
        case _:
            _count(past, event)
            _apply_to_attempt(past, event)


def _count(past: Past, event: Event) -> None:
    match event:
        case StepStarted(step=step):
            past.steps.add(step)
            if not past.judged:
                past.step = max(past.step, step)
            elif past.explain_step is None:
                past.explain_step = step
        case ModelCallIntended(idempotency_key=key):
            past.intended.add(key)
        case ModelCallDone(idempotency_key=key, routing=routing):
            past.answered.add(key)
            past.spent = Micros(past.spent + (routing.cost_micros or 0))
            past.call_failed = False
        case ModelCallFailed():
            past.call_failed = True
        case _:
            pass


def _apply_to_attempt(past: Past, event: Event) -> None:
    if past.judged:
        return
    if not past.attempts and isinstance(event, (*_WORK, LoopEnded)):
        # Where a run tries once, its attempt has no event of its own.
        past.attempts.append(_begun(past, 1, "", event))
    if not past.attempts:
        return
    now = past.attempts[-1]
    match event:
        case LoopEnded():
            now.end = event
        case PatchMade(patch=patch):
            now.patch = patch
        case TestsRan(report=report):
            now.tests = report
        case Reviewed():
            now.review = event
        case StepStarted(step=step) if now.end is not None and now.review_step is None:
            now.review_step = step
        case _ if now.end is None:
            _apply_to_work(now, event)


def _apply_to_work(now: PastAttempt, event: Event) -> None:
    match event:
        case CheckpointMade():
            now.checkpoint, now.written = event, set()
        case ConnectionsAsked() | ResourcesUsed():
            pass
        case ToolCallIntended(call=call):
            now.work.append(event)
            now.calls[call.id] = call.name
        case ToolCallDone(result=result):
            now.work.append(event)
            now.written.add(now.calls.get(result.call_id, ""))
        case _:
            now.work.append(event)


def _begun(past: Past, number: int, lessons: str, first: Event | None = None) -> PastAttempt:
    began = first.step - 1 if isinstance(first, StepStarted) else past.step
    return PastAttempt(number, lessons, past.spent, began + 1)
