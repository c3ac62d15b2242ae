"""A run's record folded into what a person or a script wants to know of it."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from turnout.core.events import (
    ApprovalAsked,
    ApprovalGiven,
    AttemptChosen,
    AttemptStarted,
    ConnectionsAsked,
    Entry,
    Event,
    Explained,
    LoopEnded,
    ModelCallDone,
    ModelCallFailed,
    Notice,
    PatchMade,
    PlanMade,
    PlanUpdated,
    ResourcesUsed,
    Reviewed,
    RunEnded,
    RunStarted,
    SpendCorrected,
    StepStarted,
    TestsRan,
    ToolCallDone,
    ToolCallIntended,
    VerdictGiven,
    WorkspaceReady,
)
from turnout.core.ids import RunId, ToolCallId
from turnout.core.money import Micros
from turnout.core.runs import Connection, Outcome, Patch, TestReport, Verdict
from turnout.core.tasks import Task
from turnout.core.tools import ToolCall, ToolResult
from turnout.core.usage import Usage
from turnout.runs.ports import StrategyName

__all__ = ["AttemptUse", "Consent", "RunResult", "Summary", "ToolUse", "fold", "sum_of"]

_NOTHING = Patch(b"", ())
_FREE = Micros(0)


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call, and what came of it."""

    step: int
    call: ToolCall
    result: ToolResult | None = None
    """None where it is under way or was given up."""
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Consent:
    """A tool call that had to wait for a person, and what came of it."""

    asked: ApprovalAsked
    given: ApprovalGiven | None = None
    """None while nobody has decided."""


@dataclass(frozen=True, slots=True)
class AttemptUse:
    """An attempt of a run that might make several, and what it came to."""

    started: AttemptStarted
    end: LoopEnded | None = None
    patch: Patch = _NOTHING
    tests: TestReport | None = None
    """With its patch."""
    review: Reviewed | None = None


@dataclass(frozen=True, slots=True)
class RunResult:
    """A run as its record tells it so far; final once `outcome` is set."""

    run_id: RunId
    task: Task
    base_commit: str
    strategy: StrategyName
    started_at: datetime
    seen_at: datetime
    """When the newest entry was written."""
    workspace: WorkspaceReady | None = None
    step: StepStarted | None = None
    """The newest step."""
    plan: str = ""
    planned: PlanMade | None = None
    """The newest plan with its items."""
    progress: PlanUpdated | None = None
    """How far that plan is."""
    attempts: tuple[AttemptUse, ...] = ()
    """Empty where only one was to be made."""
    chosen: AttemptChosen | None = None
    consents: tuple[Consent, ...] = ()
    review: Reviewed | None = None
    """Of the patch that counts."""
    calls: tuple[ModelCallDone, ...] = ()
    failed_calls: tuple[ModelCallFailed, ...] = ()
    tool_calls: tuple[ToolUse, ...] = ()
    connections: tuple[Connection, ...] = ()
    """What the work asked of the network, oldest first."""
    resources: ResourcesUsed | None = None
    usage: Usage = field(default_factory=Usage)
    cost: Micros = _FREE
    """Sum of the costs that are known."""
    tests_before: TestReport | None = None
    tests_after: TestReport | None = None
    patch: Patch = _NOTHING
    verdict: Verdict | None = None
    """None where the run was stopped before our tests could judge."""
    explanation: str = ""
    """Description of the change; without one, the model's last word."""
    warnings: tuple[str, ...] = ()
    outcome: Outcome | None = None
    reason: str = ""
    """Why it ended, in one sentence."""

    @property
    def priced(self) -> bool:
        """Whether the cost of every model call is known."""
        return all(call.routing.cost_micros is not None for call in self.calls)

    @property
    def blocked(self) -> bool:
        """Whether a review holds that the patch must not be taken."""
        return self.review is not None and self.review.blocked

    @property
    def steps(self) -> int:
        """How many steps began."""
        return self.step.step if self.step else 0

    @property
    def seconds(self) -> float:
        """From the first to the newest entry."""
        return (self.seen_at - self.started_at).total_seconds()


class Summary:
    """A record folded as it comes: an entry costs the same, however many came before."""

    def __init__(self) -> None:
        self._facts: RunResult | None = None
        """All but what grows with the run, and the time of its newest entry."""
        self._made: RunResult | None = None
        self._seen_at: datetime | None = None
        self._calls: list[ModelCallDone] = []
        self._failed_calls: list[ModelCallFailed] = []
        self._tool_calls: list[ToolUse] = []
        self._open: dict[ToolCallId, deque[int]] = {}
        """Places of tool calls without a result, by id: ids come again in later steps."""
        self._connections: list[Connection] = []
        self._consents: list[Consent] = []
        self._warnings: list[str] = []

    def add(self, entry: Entry) -> None:
        """Take the next entry in; `ValueError` where the first is not the run's start."""
        event = entry.event
        if self._facts is None:
            self._facts = _opened(entry)
        else:
            self._facts = _with_attempt(_with_event(self._facts, event), event)
        self._seen_at = entry.at
        self._grow(event)
        self._made = None

    @property
    def result(self) -> RunResult | None:
        """What the record amounts to so far; None without an entry."""
        if self._made is None and self._facts is not None and self._seen_at is not None:
            self._made = replace(
                self._facts,
                seen_at=self._seen_at,
                calls=tuple(self._calls),
                failed_calls=tuple(self._failed_calls),
                tool_calls=tuple(self._tool_calls),
                connections=tuple(self._connections),
                consents=tuple(self._consents),
                warnings=tuple(self._warnings),
            )
        return self._made

    def _grow(self, event: Event) -> None:
        match event:
            case ModelCallDone():
                self._calls.append(event)
            case ModelCallFailed():
                self._failed_calls.append(event)
            case ToolCallIntended(step=step, call=call):
                self._open.setdefault(call.id, deque()).append(len(self._tool_calls))
                self._tool_calls.append(ToolUse(step, call))
            case ToolCallDone():
                self._close(event)
            case ConnectionsAsked(connections=connections):
                self._connections += connections
            case ApprovalAsked():
                self._consents.append(Consent(event))
            case ApprovalGiven():
                self._answer(event)
            case Notice(text=text, level="warning"):
                self._warnings.append(text)
            case _:
                pass

    def _close(self, done: ToolCallDone) -> None:
        """Give the oldest open call of that id its result."""
        if places := self._open.get(done.result.call_id):
            at = places.popleft()
            use = self._tool_calls[at]
            self._tool_calls[at] = replace(use, result=done.result, seconds=done.seconds)

    def _answer(self, given: ApprovalGiven) -> None:
        for at, each in enumerate(self._consents):
            if each.given is None and each.asked.call.id == given.call_id:
                self._consents[at] = replace(each, given=given)


def fold(entries: Iterable[Entry]) -> RunResult:
    """Fold a record, oldest entry first; `ValueError` where it does not open with its start."""
    summary = Summary()
    for entry in entries:
        summary.add(entry)
    if summary.result is None:
        raise ValueError("a record without entries")
    return summary.result


def _opened(entry: Entry) -> RunResult:
    event, at = entry.event, entry.at
    if not isinstance(event, RunStarted):
        raise ValueError(f"a record opens with {event.type}")
    return RunResult(entry.run_id, event.task, event.base_commit, event.strategy, at, at)


def _with_attempt(result: RunResult, event: Event) -> RunResult:
    """Keep what each attempt came to, and let that of the chosen one count."""
    match event:
        case AttemptStarted():
            attempts = (*result.attempts, AttemptUse(event))
            return replace(
                result,
                attempts=attempts,
                patch=_NOTHING,
                tests_after=None,
                review=None,
                explanation="",
                plan="",
                planned=None,
                progress=None,
            )
        case AttemptChosen(attempt=number):
            return _chosen(replace(result, chosen=event), number)
        case _ if not result.attempts or result.chosen is not None:
            return result
        case LoopEnded():
            return _newest(result, end=event)
        case PatchMade(patch=patch):
            return _newest(result, patch=patch)
        case TestsRan(phase="after", report=report):
            return _newest(result, tests=report)
        case Reviewed():
            return _newest(result, review=event)
        case _:
            return result


def _newest(result: RunResult, **fields: Any) -> RunResult:
    *earlier, newest = result.attempts
    return replace(result, attempts=(*earlier, replace(newest, **fields)))


def _chosen(result: RunResult, number: int) -> RunResult:
    chosen = next((each for each in result.attempts if each.started.attempt == number), None)
    if chosen is None:
        return result
    return replace(
        result,
        patch=chosen.patch,
        tests_after=chosen.tests,
        review=chosen.review,
        explanation=chosen.end.answer if chosen.end else "",
    )


def _with_event(result: RunResult, event: Event) -> RunResult:
    match event:
        case WorkspaceReady():
            return replace(result, workspace=event)
        case TestsRan(phase="before", report=report):
            return replace(result, tests_before=report)
        case TestsRan(report=report):
            return replace(result, tests_after=report)
        case PatchMade(patch=patch):
            return replace(result, patch=patch)
        case VerdictGiven(verdict=verdict):
            return replace(result, verdict=verdict)
        case RunEnded(outcome=outcome, reason=reason):
            return replace(result, outcome=outcome, reason=reason)
        case _:
            return _with_work(result, event)


def _with_work(result: RunResult, event: Event) -> RunResult:
    match event:
        case StepStarted():
            return replace(result, step=event)
        case PlanMade(text=text):
            return replace(result, plan=text, planned=event, progress=None)
        case ModelCallDone():
            return replace(
                result,
                usage=result.usage + event.usage,
                cost=Micros(result.cost + (event.routing.cost_micros or 0)),
            )
        case LoopEnded(answer=answer) if answer:
            return replace(result, explanation=answer)
        case Explained(text=text) if text:
            return replace(result, explanation=text)
        case _:
            return _with_rest(result, event)


def _with_rest(result: RunResult, event: Event) -> RunResult:
    match event:
        case ResourcesUsed():
            return replace(result, resources=sum_of(result.resources, event))
        case SpendCorrected(charged=charged, usage=usage):
            return replace(result, cost=charged, usage=usage)
        case PlanUpdated():
            return replace(result, progress=event)
        case Reviewed():
            return replace(result, review=event)
        case _:
            return result


def sum_of(earlier: ResourcesUsed | None, used: ResourcesUsed) -> ResourcesUsed:
    """Add what more sandboxes took; the peak is the highest, the cost what is known of it."""
    if earlier is None:
        return used
    cpu, disk = (earlier.cpu_seconds, used.cpu_seconds), (earlier.disk_bytes, used.disk_bytes)
    memory = (earlier.memory_mib_seconds, used.memory_mib_seconds)
    peaks = [each.peak_memory_bytes for each in (earlier, used) if each.peak_memory_bytes]
    costs = [each.cost for each in (earlier, used) if each.cost is not None]
    return ResourcesUsed(
        None if None in cpu else sum(filter(None, cpu)),
        max(peaks, default=None),
        None if None in disk else sum(filter(None, disk)),
        earlier.wall_seconds + used.wall_seconds,
        earlier.frozen_seconds + used.frozen_seconds,
        None if None in memory else sum(filter(None, memory)),
        Micros(sum(costs)) if costs else None,
    )
