"""The record of a run of many steps with a lot of output."""

from collections.abc import Iterator, Sequence
from typing import Final

from turnout.core.events import (
    Event,
    ModelCallDone,
    ModelCallIntended,
    PlanMade,
    RunStarted,
    StepStarted,
    ToolCallDone,
    ToolCallIntended,
    WorkspaceReady,
)
from turnout.core.ids import DeploymentId, ModelId, ProviderName, RequestId, SessionId, ToolCallId
from turnout.core.inference import RoutingReport, StepKind
from turnout.core.json import ascii_json
from turnout.core.messages import AssistantMessage, UserMessage
from turnout.core.money import Micros
from turnout.core.tasks import Task
from turnout.core.tools import ToolCall, ToolResult
from turnout.core.usage import Usage

__all__ = ["long_record", "step_events"]

_LINE: Final = (
    "tests/test_pages.py::test_the_page_starts_at_its_first_item[{step:04}-{at:06}] PASSED\n"
)


def long_record(task: Task, steps: int, characters: int) -> Sequence[Event]:
    """Return a run that is under way: a plan, and then so many steps of a call each.

    Of each result the model has read the first thousand characters; all of them together have
    as many as `characters`.
    """
    each = characters // steps
    return (
        RunStarted(task, "c" * 40, "loop"),
        WorkspaceReady("bubblewrap", None, (), 0.4),
        *_called(1, "plan", AssistantMessage("1. Read it.\n2. Mend it.")),
        PlanMade("1. Read it.\n2. Mend it.", ("Read it.", "Mend it.")),
        *(event for step in range(2, steps + 2) for event in step_events(step, each)),
    )


def step_events(step: int, characters: int) -> Sequence[Event]:
    """Return one act step: a model call, and a tool call whose result has so many characters."""
    arguments = ascii_json({"path": "pages.py", "first_line": step})
    call = ToolCall(ToolCallId(f"call-{step}"), "read_file", arguments)
    output = "".join(_LINE.format(step=step, at=at) for at in range(characters // 80 + 1))
    output = output[:characters]
    shown = output[:1_000]
    left_out = len(output) - len(shown)
    result = ToolResult(call.id, shown, elided_chars=left_out, full=output if left_out else "")
    return (
        *_called(step, "act", AssistantMessage(f"I look at line {step}.", (call,))),
        ToolCallIntended(step, call),
        ToolCallDone(step, result, 0.02),
    )


def _called(step: int, kind: StepKind, message: AssistantMessage) -> Iterator[Event]:
    key = f"call-{step:06}"
    model = ModelId("large" if kind == "plan" else "small")
    report = RoutingReport(
        model=model,
        provider=ProviderName("scripted"),
        deployment=DeploymentId(f"scripted/{model}"),
        objective="quality" if kind == "plan" else "latency",
        task="coding",
        task_source="request",
        session=SessionId("long"),
        sticky=False,
        fallback=False,
        policy_revision=1,
        reason=f"{model} is the best of two that the policy admits.",
        cost_micros=Micros(120),
    )
    yield StepStarted(step, kind, report.objective)
    asked = (UserMessage("Go on."),)
    yield ModelCallIntended(step, kind, "main", key, "auto", asked)
    yield ModelCallDone(
        step,
        kind,
        "main",
        key,
        RequestId(f"req-{step}"),
        message,
        "tool_calls" if message.tool_calls else "stop",
        Usage(1_000, 20),
        report,
        350,
    )
