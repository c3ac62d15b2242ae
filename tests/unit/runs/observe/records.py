"""Records of runs whose every moment is known."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tests.unit.runs.parts import COMMIT, PASSING, TASK
from tests.unit.runs.test_summary import call

from turnout.core.events import (
    ApprovalAsked,
    ApprovalGiven,
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
from turnout.core.messages import UserMessage
from turnout.core.money import Micros
from turnout.core.runs import Verdict
from turnout.core.tools import ToolCall, ToolResult

RUN = RunId("run-0123456789ab")
START = datetime(2026, 1, 1, tzinfo=UTC)
SECRET = "what nobody was to read"


def timed(*events: tuple[float, Event]) -> list[Entry]:
    """Return entries, each so many seconds after the start."""
    return [
        Entry(RUN, seq, START + timedelta(seconds=at), event)
        for seq, (at, event) in enumerate(events, 1)
    ]


def intended(step: int) -> ModelCallIntended:
    """Return the intent of a step's model call."""
    key = f"{RUN}/{step}"
    return ModelCallIntended(step, "act", "main", key, "auto", (UserMessage(SECRET),))


def answered(step: int) -> ModelCallDone:
    """Return its answer, which cost 5 micro-dollars."""
    return replace(call(5), step=step, idempotency_key=f"{RUN}/{step}")


def failed(step: int) -> ModelCallFailed:
    """Return that it has none."""
    return ModelCallFailed(step, "act", "main", f"{RUN}/{step}", 503, "no_eligible_model", SECRET)


def asks(step: int, name: str = "run", call_id: str = "c1") -> ToolCallIntended:
    """Return the intent of a tool call."""
    return ToolCallIntended(step, ToolCall(ToolCallId(call_id), name, f'{{"a": "{SECRET}"}}'))


def gets(step: int, seconds: float, call_id: str = "c1", *, error: bool = False) -> ToolCallDone:
    """Return its result."""
    return ToolCallDone(step, ToolResult(ToolCallId(call_id), SECRET, error), seconds)


def whole() -> list[Entry]:
    """Return a run of two steps and 50 seconds; another worker takes it up between them."""
    waits = asks(2, "run", "c2").call
    return timed(
        (0, RunStarted(TASK, COMMIT, "loop")),
        (3, WorkspaceReady("namespaces", "pytest -q", (), 2.0)),
        (5, TestsRan("before", replace(PASSING, seconds=1.5))),
        (6, StepStarted(1, "act", "latency")),
        (6.5, intended(1)),
        (16.5, answered(1)),
        (17, asks(1)),
        (21, gets(1, 3.0)),
        (21, CheckpointMade("layer", "base", ("layer",), 10, 1.0)),
        (30, RunResumed(2, "other")),
        (31, StepStarted(2, "act", "latency")),
        (31, intended(2)),
        (33, answered(2)),
        (33, ApprovalAsked(2, waits, "run")),
        (40, ApprovalGiven(2, ToolCallId("c2"), True, "ann")),
        (41, asks(2, "run", "c2")),
        (42, gets(2, 0.5, "c2", error=True)),
        (42, LoopEnded("answered", "done")),
        (45, VerdictGiven(Verdict("resolved", True, True, True))),
        (50, ResourcesUsed(2.5, 1 << 20, None, 40.0, 10.0, 80.0, Micros(30))),
        (50, RunEnded("answered", "done")),
    )
