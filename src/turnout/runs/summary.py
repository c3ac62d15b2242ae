"""A run's record folded into what a person or a script wants to know of it."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from turnout.core.events import (
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
    ResourcesUsed,
    RunEnded,
    RunStarted,
    StepStarted,
    TestsRan,
    ToolCallDone,
    ToolCallIntended,
    VerdictGiven,
    WorkspaceReady,
)
from turnout.core.ids import RunId
from turnout.core.money import Micros
from turnout.core.runs import Connection, Outcome, Patch, TestReport, Verdict
from turnout.core.tasks import Task
from turnout.core.tools import ToolCall, ToolResult
from turnout.core.usage import Usage
from turnout.runs.ports import StrategyName

__all__ = ["RunResult", "ToolUse", "advance", "fold"]

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
    def steps(self) -> int:
        """How many steps began."""
        return self.step.step if self.step else 0

    @property
    def seconds(self) -> float:
        """From the first to the newest entry."""
        return (self.seen_at - self.started_at).total_seconds()


def fold(entries: Iterable[Entry]) -> RunResult:
    """Fold a record, oldest entry first; `ValueError` where it does not open with its start."""
    result: RunResult | None = None
    for entry in entries:
        result = advance(result, entry)
    if result is None:
        raise ValueError("a record without entries")
    return result


def advance(result: RunResult | None, entry: Entry) -> RunResult:
    """Return the result with one more entry in it; None stands for no entry so far."""
    event = entry.event
    if result is None:
        if not isinstance(event, RunStarted):
            raise ValueError(f"a record opens with {event.type}")
        return RunResult(
            entry.run_id, event.task, event.base_commit, event.strategy, entry.at, entry.at
        )
    return replace(_with_event(result, event), seen_at=entry.at)


def _with_event(result: RunResult, event: Event) -> RunResult:
    match event:
        case WorkspaceReady():
            return replace(result, workspace=event)
        case Notice(text=text, level="warning"):
            return replace(result, warnings=(*result.warnings, text))
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
            return replace(result, plan=text)
        case ModelCallDone():
            return replace(
                result,
                calls=(*result.calls, event),
                usage=result.usage + event.usage,
                cost=Micros(result.cost + (event.routing.cost_micros or 0)),
            )
        case ModelCallFailed():
            return replace(result, failed_calls=(*result.failed_calls, event))
        case ToolCallIntended(step=step, call=call):
            return replace(result, tool_calls=(*result.tool_calls, ToolUse(step, call)))
        case ConnectionsAsked(connections=connections):
            return replace(result, connections=(*result.connections, *connections))
        case ResourcesUsed():
            return replace(result, resources=event)
        case ToolCallDone():
            return replace(result, tool_calls=_with_result(result.tool_calls, event))
        case LoopEnded(answer=answer) if answer:
            return replace(result, explanation=answer)
        case Explained(text=text) if text:
            return replace(result, explanation=text)
        case _:
            return result


def _with_result(uses: tuple[ToolUse, ...], done: ToolCallDone) -> tuple[ToolUse, ...]:
    """Give the oldest open call of that id its result: ids come again in later steps."""
    for at, use in enumerate(uses):
        if use.result is None and use.call.id == done.result.call_id:
            closed = replace(use, result=done.result, seconds=done.seconds)
            return (*uses[:at], closed, *uses[at + 1 :])
    return uses
