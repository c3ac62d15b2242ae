"""A run's record folded into spans: the run, its steps, their model calls and tool calls."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from turnout.core.events import (
    ApprovalAsked,
    ApprovalGiven,
    AttemptStarted,
    CheckpointMade,
    Entry,
    Event,
    LoopEnded,
    ModelCallDone,
    ModelCallFailed,
    ModelCallIntended,
    ResourcesUsed,
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
from turnout.core.ids import RunId, ToolCallId
from turnout.core.observe.spans import Attribute, Span
from turnout.core.usage import Usage
from turnout.runs.observe.naming import (
    Names,
    answered,
    asked,
    lasting,
    tokens,
    tool_asked,
    tool_said,
)

__all__ = ["Timeline", "spans_of"]


@dataclass(slots=True)
class _Step:
    began: StepStarted
    start: datetime
    end: datetime
    """When the newest entry of it was written."""
    attempt: int | None
    under_way: int = 0
    """Calls of it that have no end yet."""


@dataclass(slots=True)
class _Totals:
    start: datetime
    strategy: str
    usage: Usage = field(default_factory=Usage)
    cost: int = 0
    steps: int = 0
    segments: int = 1
    verdict: str = ""
    cpu_seconds: float = 0.0
    """Of sandboxes, as far as it is known."""
    sandbox_cost: int = 0

    def add(self, event: Event) -> None:
        match event:
            case ModelCallDone(usage=usage, routing=routing):
                self.usage += usage
                self.cost += routing.cost_micros or 0
            case VerdictGiven(verdict=verdict):
                self.verdict = verdict.name
            case ResourcesUsed(cpu_seconds=seconds, cost=cost):
                self.cpu_seconds += seconds or 0.0
                self.sandbox_cost += cost or 0
            case _:
                pass


@dataclass(frozen=True, slots=True)
class _Tool:
    at: datetime
    seq: int
    intended: ToolCallIntended


class Timeline:
    """Takes entries in order and gives the spans that each one ends; it holds what is open."""

    def __init__(self, run_id: RunId, *, content: bool = False) -> None:
        """Say with `content` what was said as well: prompts, answers, arguments, results."""
        self._names = Names(run_id)
        self._content = content
        self._totals: _Totals | None = None
        self._attempt: int | None = None
        self._steps: dict[int, _Step] = {}
        self._calls: dict[str, tuple[datetime, ModelCallIntended]] = {}
        self._tools: dict[ToolCallId, deque[_Tool]] = {}
        self._asked: dict[ToolCallId, tuple[datetime, ApprovalAsked]] = {}
        self._entered: datetime | None = None
        """When a worker, or an attempt, began to set up its workspace."""
        self._newest: int | None = None
        """The step of the newest tool result."""

    def add(self, entry: Entry) -> list[Span]:
        """Return what ended with an entry; before the run's start, nothing."""
        at, event = entry.at, entry.event
        if isinstance(event, RunStarted):
            self._totals = _Totals(at, event.strategy)
            self._entered = at
        if self._totals is None:
            return []
        match event:
            case StepStarted():
                ended = self._ended_steps()
                self._steps[event.step] = _Step(event, at, at, self._attempt)
                self._totals.steps = max(self._totals.steps, event.step)
                return ended
            case AttemptStarted(attempt=number):
                self._attempt, self._entered = number, at
                return self._ended_steps(every=True)
            case LoopEnded():
                return self._ended_steps()
            case RunResumed():
                self._totals.segments += 1
                self._entered = at
                self._send_again(at)
                return []
            case RunEnded():
                return [*self._ended_steps(every=True), self._run(self._totals, event, at)]
            case _:
                self._totals.add(event)
                return self._beside(entry.seq, event, at)

    def rest(self) -> list[Span]:
        """Return the steps that are open, as far as they are."""
        return self._ended_steps(every=True)

    def _beside(self, seq: int, event: Event, at: datetime) -> list[Span]:
        said: dict[str, Attribute]
        match event:
            case WorkspaceReady(isolation=walls):
                self._send_again(at)
                said = {"turnout.isolation": walls}
                when = (self._entered or at, at)
                return [self._names.part(f"workspace #{seq}", "workspace", when, said)]
            case TestsRan(phase=phase, report=report):
                said = {"turnout.tests.ok": report.ok}
                return [self._names.past(f"tests {phase} #{seq}", at, report.seconds, said)]
            case CheckpointMade(seconds=seconds, size_bytes=size):
                said = {"turnout.checkpoint.bytes": size}
                return [self._names.past(f"checkpoint #{seq}", at, seconds, said, self._newest)]
            case _:
                return self._calling(seq, event, at)

    def _calling(self, seq: int, event: Event, at: datetime) -> list[Span]:
        match event:
            case ModelCallIntended():
                self._calls[event.idempotency_key] = (at, event)
                self._touch(event.step, at, 1)
            case ModelCallDone() | ModelCallFailed():
                return self._called(event, at)
            case ToolCallIntended():
                self._tools.setdefault(event.call.id, deque()).append(_Tool(at, seq, event))
                self._touch(event.step, at, 1)
            case ToolCallDone():
                return self._used(event, at)
            case ApprovalAsked():
                self._asked[event.call.id] = (at, event)
                self._touch(event.step, at)
            case ApprovalGiven():
                return self._decided(event, at)
            case _:
                pass
        return []

    def _send_again(self, at: datetime) -> None:
        """Let open calls begin only now: who sent them is gone, since when nobody knows."""
        self._calls = {key: (at, intended) for key, (_, intended) in self._calls.items()}

    def _called(self, event: ModelCallDone | ModelCallFailed, at: datetime) -> list[Span]:
        begun = self._calls.pop(event.idempotency_key, None)
        if begun is None:
            return []
        self._touch(event.step, at, -1)
        start, intended = begun
        span = self._names.chat(start, at, intended)
        said = asked(intended, content=self._content)
        if isinstance(event, ModelCallFailed):
            error = event.code or "model_call_failed"
            return [replace(span, attributes={**span.attributes, **said}, error=error)]
        said |= answered(event, content=self._content)
        return [replace(span, attributes={**span.attributes, **said})]

    def _used(self, done: ToolCallDone, at: datetime) -> list[Span]:
        begun = self._tools.get(done.result.call_id)
        if not begun:
            return []
        tool = begun.popleft()
        if not begun:
            del self._tools[done.result.call_id]
        self._newest = tool.intended.step
        self._touch(self._newest, at, -1)
        end = min(at, tool.at + lasting(done.seconds))
        span = self._names.tool(tool.seq, tool.at, end, tool.intended)
        said = tool_asked(tool.intended, content=self._content)
        said |= tool_said(done, content=self._content)
        error = "tool_error" if done.result.is_error else ""
        return [replace(span, attributes={**span.attributes, **said}, error=error)]

    def _decided(self, given: ApprovalGiven, at: datetime) -> list[Span]:
        begun = self._asked.pop(given.call_id, None)
        if begun is None:
            return []
        self._touch(given.step, at)
        start, _ = begun
        said: dict[str, Attribute] = {
            "gen_ai.tool.call.id": given.call_id,
            "turnout.approval.allowed": given.allowed,
        }
        what = f"approval {given.step} {given.call_id}"
        return [self._names.part(what, "approval", (start, at), said, given.step)]

    def _touch(self, number: int, at: datetime, calls: int = 0) -> None:
        step = self._steps.get(number)
        if step is not None:
            step.end = at
            step.under_way += calls

    def _ended_steps(self, *, every: bool = False) -> list[Span]:
        over = [step for step in self._steps.values() if every or step.under_way <= 0]
        for step in over:
            del self._steps[step.began.step]
        return [self._step(step) for step in over]

    def _step(self, step: _Step) -> Span:
        said: dict[str, Attribute] = {
            "turnout.step": step.began.step,
            "turnout.step.kind": step.began.kind,
            "turnout.objective": step.began.objective,
        }
        if step.attempt is not None:
            said["turnout.attempt"] = step.attempt
        name, when = f"step {step.began.kind}", (step.start, step.end)
        return self._names.part(f"step {step.began.step}", name, when, said)

    def _run(self, totals: _Totals, ended: RunEnded, at: datetime) -> Span:
        said: dict[str, Attribute] = {
            **tokens(totals.usage),
            "turnout.strategy": totals.strategy,
            "turnout.outcome": ended.outcome,
            "turnout.steps": totals.steps,
            "turnout.segments": totals.segments,
            "turnout.cost_micros": totals.cost,
            "turnout.sandbox.cpu_seconds": totals.cpu_seconds,
            "turnout.sandbox.cost_micros": totals.sandbox_cost,
        }
        if totals.verdict:
            said["turnout.verdict"] = totals.verdict
        span = self._names.run(totals.start, at, said)
        return replace(span, error="failed" if ended.outcome == "failed" else "")


def spans_of(run_id: RunId, entries: Iterable[Entry]) -> Sequence[Span]:
    """Return all spans of a record, open steps as far as they are."""
    timeline = Timeline(run_id)
    ended = [span for entry in entries for span in timeline.add(entry)]
    return [*ended, *timeline.rest()]
