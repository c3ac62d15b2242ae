"""The facts of a run, in the order in which they became true.

A run's record is the sequence of its events. Before a model or tool call starts its intent is
on record, after it the result, so that the whole state of a run is a fold of its events.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from turnout.core.ids import RequestId, RunId, ToolCallId
from turnout.core.inference import (
    Alternative,
    FinishReason,
    Objective,
    RoutingReport,
    StepKind,
)
from turnout.core.json import ascii_json
from turnout.core.messages import AssistantMessage, Message
from turnout.core.money import Micros
from turnout.core.runs import Connection, Outcome, Patch, TestReport, Verdict
from turnout.core.tasks import Task
from turnout.core.tools import ToolCall, ToolResult
from turnout.core.usage import Usage

__all__ = [
    "ApprovalAsked",
    "ApprovalGiven",
    "AttemptChosen",
    "AttemptStarted",
    "CheckpointMade",
    "ConnectionsAsked",
    "Entry",
    "Event",
    "Explained",
    "HistoryCondensed",
    "LoopEnded",
    "ModelCallDone",
    "ModelCallFailed",
    "ModelCallIntended",
    "Notice",
    "PatchMade",
    "PlanMade",
    "PlanState",
    "PlanUpdated",
    "ResourcesUsed",
    "ReviewDecision",
    "ReviewNote",
    "Reviewed",
    "RunEnded",
    "RunResumed",
    "RunStarted",
    "Severity",
    "SpendCorrected",
    "StepStarted",
    "TestsRan",
    "ToolCallDone",
    "ToolCallIntended",
    "VerdictGiven",
    "WorkspaceReady",
    "decode_event",
    "encode_event",
]


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run was taken in."""

    task: Task
    base_commit: str
    """Full object name that `task.base` stood for."""
    strategy: Literal["loop", "repair", "branch"]
    type: Literal["run_started"] = "run_started"


@dataclass(frozen=True, slots=True)
class RunResumed:
    """A worker goes on with a run that an earlier one has left."""

    segment: int
    """Counts from 2: the first segment is what `run_started` begins."""
    worker: str
    """Who goes on with it."""
    type: Literal["run_resumed"] = "run_resumed"


@dataclass(frozen=True, slots=True)
class WorkspaceReady:
    """The sandbox is up and holds the repository at the base commit."""

    isolation: str
    """Which walls hold, as `turnout doctor` names them."""
    test_command: str | None
    """None where no tests were found and none were named."""
    requirements: tuple[str, ...]
    """What was installed into the environment of the tests."""
    seconds: float
    type: Literal["workspace_ready"] = "workspace_ready"


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that a person should know and that ends nothing."""

    text: str
    level: Literal["info", "warning"] = "info"
    type: Literal["notice"] = "notice"


@dataclass(frozen=True, slots=True)
class TestsRan:
    """We ran the tests, before or after the work."""

    __test__ = False

    phase: Literal["before", "after"]
    report: TestReport
    type: Literal["tests_ran"] = "tests_ran"


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A step begins: one model call and the tools it asks for."""

    step: int
    """Counts from 1 within a run, all kinds together."""
    kind: StepKind
    objective: Objective
    type: Literal["step_started"] = "step_started"


@dataclass(frozen=True, slots=True)
class ModelCallIntended:
    """A model call is about to be sent."""

    step: int
    kind: StepKind
    conversation: str
    """Calls of one conversation share their history; `main` is the loop's own."""
    idempotency_key: str
    model: str
    """`auto`, or the pinned model."""
    messages: tuple[Message, ...]
    """What this call adds to its conversation; tool results are on record as their own events."""
    tool: str = ""
    """The one tool that it carries; empty: those that steps of its kind do."""
    type: Literal["model_call_intended"] = "model_call_intended"


@dataclass(frozen=True, slots=True)
class ModelCallDone:
    """A model answered."""

    step: int
    kind: StepKind
    conversation: str
    idempotency_key: str
    request_id: RequestId
    message: AssistantMessage
    finish_reason: FinishReason
    usage: Usage
    routing: RoutingReport
    latency_ms: int
    alternatives: tuple[Alternative, ...] = ()
    """What else the model might have said, where that was asked for."""
    type: Literal["model_call_done"] = "model_call_done"


@dataclass(frozen=True, slots=True)
class ModelCallFailed:
    """A model call ended without an answer."""

    step: int
    kind: StepKind
    conversation: str
    idempotency_key: str
    status: int | None
    """HTTP status of the gateway; None where it could not be reached."""
    code: str
    error: str
    type: Literal["model_call_failed"] = "model_call_failed"


@dataclass(frozen=True, slots=True)
class ToolCallIntended:
    """A tool call is about to be carried out."""

    step: int
    call: ToolCall
    type: Literal["tool_call_intended"] = "tool_call_intended"


@dataclass(frozen=True, slots=True)
class ToolCallDone:
    """A tool call has its one result."""

    step: int
    result: ToolResult
    seconds: float
    type: Literal["tool_call_done"] = "tool_call_done"


@dataclass(frozen=True, slots=True)
class CheckpointMade:
    """What the workspace holds is kept, so that another sandbox can begin with it.

    It is committed together with the result of the call whose effect it holds.
    """

    layer: str
    base: str
    """Key of the base that the layer lies on."""
    stack: tuple[str, ...]
    """Keys of the layers beneath and of this one, lowest first."""
    size_bytes: int
    seconds: float
    """How long it took to make."""
    type: Literal["checkpoint_made"] = "checkpoint_made"


@dataclass(frozen=True, slots=True)
class ConnectionsAsked:
    """Something in the workspace asked for connections, served or refused."""

    connections: tuple[Connection, ...]
    """Those that ended since the last such event, oldest first."""
    type: Literal["connections_asked"] = "connections_asked"


@dataclass(frozen=True, slots=True)
class PlanMade:
    """The plan, as the model wrote it."""

    text: str
    steps: tuple[str, ...] = ()
    """Its numbered items, in order; empty where it has none."""
    success: str = ""
    """What must hold when the work is done; empty where the model did not say."""
    type: Literal["plan_made"] = "plan_made"


PlanState = Literal["open", "under_way", "done"]


@dataclass(frozen=True, slots=True)
class PlanUpdated:
    """How far the plan is."""

    states: tuple[PlanState, ...]
    """One for each item of the plan."""
    type: Literal["plan_updated"] = "plan_updated"


@dataclass(frozen=True, slots=True)
class HistoryCondensed:
    """The conversation of the act steps goes on from a summary of what was said."""

    conversation: str
    through_step: int
    """Newest step whose messages the summary stands for."""
    text: str
    """What takes the place of these messages."""
    type: Literal["history_condensed"] = "history_condensed"


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """A tool call waits for a person."""

    step: int
    call: ToolCall
    rule: str
    """The rule that asks for it, as it is written in the settings."""
    type: Literal["approval_asked"] = "approval_asked"


@dataclass(frozen=True, slots=True)
class ApprovalGiven:
    """A person, or what stands in for one, has decided on a tool call."""

    step: int
    call_id: ToolCallId
    allowed: bool
    by: str
    """Who decided."""
    note: str = ""
    """What the model is told with a refusal."""
    type: Literal["approval_given"] = "approval_given"


@dataclass(frozen=True, slots=True)
class AttemptStarted:
    """A run that may try more than once begins an attempt, in a workspace of its own."""

    attempt: int
    """Counts from 1."""
    of: int
    """How many there may be."""
    objective: Objective
    """What its act steps are routed for."""
    lessons: str = ""
    """What it is told of the attempts before."""
    type: Literal["attempt_started"] = "attempt_started"


@dataclass(frozen=True, slots=True)
class AttemptChosen:
    """Our own test runs have picked the attempt whose patch is the result."""

    attempt: int
    reason: str
    type: Literal["attempt_chosen"] = "attempt_chosen"


Severity = Literal["error", "warning", "note"]
"""error: the change must not be taken as it is."""

ReviewDecision = Literal["approve", "annotate", "block"]


@dataclass(frozen=True, slots=True)
class ReviewNote:
    """One remark of a review."""

    path: str
    """Empty where it is about the whole change."""
    line: int | None
    text: str
    blocks: bool
    severity: Severity | None = None
    """None where the review says no more than whether it blocks."""

    @property
    def level(self) -> Severity:
        """How severe it is."""
        return self.severity or ("error" if self.blocks else "warning")


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A review agent has read the change."""

    blocked: bool
    """Whether it holds that the change must not be taken as it is."""
    summary: str
    notes: tuple[ReviewNote, ...] = ()
    decided: bool = True
    """False where the review came to no decision of its own."""
    decision: ReviewDecision | None = None
    """What it said, whether or not it may block; None where that is not known."""
    outcome: Outcome = "answered"
    """Why the agent ended."""
    type: Literal["reviewed"] = "reviewed"


@dataclass(frozen=True, slots=True)
class LoopEnded:
    """The agent stops; the patch and the verdict are still to come."""

    outcome: Outcome
    reason: str
    """One sentence for people."""
    answer: str = ""
    """The model's last word; empty where it had none."""
    type: Literal["loop_ended"] = "loop_ended"


@dataclass(frozen=True, slots=True)
class ResourcesUsed:
    """What the sandboxes of a segment took, those of our tests included; None: not known."""

    cpu_seconds: float | None
    peak_memory_bytes: int | None
    """The highest of any of them."""
    disk_bytes: int | None
    """Written in the workspaces and not removed."""
    wall_seconds: float
    frozen_seconds: float
    """How much of that they were frozen, waiting for a model or a person."""
    memory_mib_seconds: float | None = None
    """Peak of each times its wall time: never less than what was in use."""
    cost: Micros | None = None
    """At the rates that were set then; None where none were."""
    type: Literal["resources_used"] = "resources_used"


@dataclass(frozen=True, slots=True)
class PatchMade:
    """The workspace was compared with its base commit."""

    patch: Patch
    type: Literal["patch_made"] = "patch_made"


@dataclass(frozen=True, slots=True)
class VerdictGiven:
    """Our own judgement of the patch."""

    verdict: Verdict
    type: Literal["verdict_given"] = "verdict_given"


@dataclass(frozen=True, slots=True)
class Explained:
    """The description of the change for its reader."""

    text: str
    type: Literal["explained"] = "explained"


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The work is over; nothing follows but a correction of what it cost."""

    outcome: Outcome
    reason: str
    type: Literal["run_ended"] = "run_ended"


@dataclass(frozen=True, slots=True)
class SpendCorrected:
    """The gateway's receipts say something else than the record: from now on they count."""

    recorded: Micros
    """What the record amounted to."""
    charged: Micros
    """What the receipts of the run amount to."""
    usage: Usage
    """Tokens, by the receipts."""
    requests: tuple[RequestId, ...]
    """Those on which the two differ, at most 100."""
    type: Literal["spend_corrected"] = "spend_corrected"


Event = (
    RunStarted
    | RunResumed
    | WorkspaceReady
    | Notice
    | TestsRan
    | StepStarted
    | ModelCallIntended
    | ModelCallDone
    | ModelCallFailed
    | ToolCallIntended
    | ToolCallDone
    | CheckpointMade
    | ConnectionsAsked
    | PlanMade
    | PlanUpdated
    | HistoryCondensed
    | ApprovalAsked
    | ApprovalGiven
    | AttemptStarted
    | AttemptChosen
    | Reviewed
    | LoopEnded
    | ResourcesUsed
    | PatchMade
    | VerdictGiven
    | Explained
    | RunEnded
    | SpendCorrected
)


@dataclass(frozen=True, slots=True)
class Entry:
    """An event at its place in a run's record."""

    run_id: RunId
    seq: int
    """Counts from 1 within the run, without gaps."""
    at: datetime
    event: Event


@cache
def _adapter() -> TypeAdapter[Event]:
    return TypeAdapter(Annotated[Event, Field(discriminator="type")])


def encode_event(event: Event) -> str:
    """Return `event` as one JSON object in ASCII; bytes are base64."""
    return ascii_json(_adapter().dump_python(event, mode="json"))


def decode_event(text: str | bytes) -> Event:
    """Return the event that `encode_event` wrote; ValueError where it is none."""
    return _adapter().validate_python(json.loads(text))
