"""The whole record of a run, every event with all that it holds, for a person to read."""

from collections.abc import Iterable
from typing import assert_never

from turnout.cli.report import report_text
from turnout.cli.terminal import safe
from turnout.cli.tool_lines import Part, call_part, connection_text, part_text
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
from turnout.core.messages import AssistantMessage, Message
from turnout.core.money import format_usd
from turnout.core.runs import TestReport

__all__ = ["entry_text"]

_Decision = ApprovalAsked | ApprovalGiven | AttemptStarted | AttemptChosen | PlanUpdated | Reviewed
_Lasting = RunResumed | CheckpointMade
_Fact = (
    RunStarted
    | WorkspaceReady
    | Notice
    | TestsRan
    | ConnectionsAsked
    | PlanMade
    | HistoryCondensed
    | LoopEnded
    | ResourcesUsed
    | PatchMade
    | VerdictGiven
    | Explained
    | RunEnded
    | SpendCorrected
)
_Work = (
    StepStarted
    | ModelCallIntended
    | ModelCallDone
    | ModelCallFailed
    | ToolCallIntended
    | ToolCallDone
)


def entry_text(entry: Entry) -> str:
    """Return an entry as readable text that cannot steer a terminal."""
    head = f"#{entry.seq} {entry.at:%H:%M:%S} {entry.event.type}"
    return safe("\n".join([head, *map(part_text, _parts(entry.event))]))


_StepEvent = (
    StepStarted
    | ModelCallIntended
    | ModelCallDone
    | ModelCallFailed
    | ToolCallIntended
    | ToolCallDone
    | ApprovalAsked
    | ApprovalGiven
)


def _parts(event: Event) -> Iterable[Part]:
    if isinstance(event, _Decision):
        return _decision_parts(event)
    if isinstance(event, _Lasting):
        return _lasting_parts(event)
    return _work_parts(event) if isinstance(event, _Work) else _fact_parts(event)


def _fact_parts(event: _Fact) -> Iterable[Part]:
    match event:
        case RunStarted(task=task):
            return [
                ("task", task.prompt),
                ("repository", task.repository),
                ("base", f"{task.base} ({event.base_commit})"),
                ("strategy", event.strategy),
                *([("set up by", task.setup)] if task.setup else []),
            ]
        case WorkspaceReady():
            return [
                ("walls", event.isolation),
                ("test command", event.test_command or "none"),
                ("requirements", ", ".join(event.requirements) or "none"),
                ("seconds", f"{event.seconds:.1f}"),
            ]
        case TestsRan():
            return [("phase", event.phase), *_tests(event.report)]
        case PatchMade(patch=patch):
            left_out = [("left out", ", ".join(patch.excluded))] if patch.excluded else []
            return [("diff", patch.diff.decode(errors="backslashreplace")), *left_out]
        case VerdictGiven(verdict=verdict):
            named = (("touched", verdict.touched), ("new tests", verdict.new_tests))
            paths = [(what, ", ".join(found)) for what, found in named if found]
            return [("verdict", verdict.name), ("detail", verdict.detail), *paths]
        case LoopEnded() | RunEnded():
            answer = [("answer", event.answer)] if isinstance(event, LoopEnded) else []
            return [("outcome", event.outcome), ("reason", event.reason), *answer]
        case ConnectionsAsked(connections=connections):
            return [("asked", connection_text(each)) for each in connections]
        case ResourcesUsed():
            return _resources(event)
        case SpendCorrected():
            return [
                ("on record", format_usd(event.recorded)),
                ("by receipts", format_usd(event.charged)),
                ("requests", ", ".join(event.requests)),
            ]
        case Notice():
            return [(event.level, event.text)]
        case PlanMade() | Explained() | HistoryCondensed():
            return [("text", event.text)]
        case _:
            assert_never(event)


def _lasting_parts(event: _Lasting) -> Iterable[Part]:
    match event:
        case RunResumed():
            return [("segment", event.segment), ("worker", event.worker)]
        case CheckpointMade():
            return [
                ("layer", event.layer),
                ("bytes", event.size_bytes),
                ("seconds", f"{event.seconds:.3f}"),
            ]


def _decision_parts(event: _Decision) -> Iterable[Part]:
    match event:
        case PlanUpdated(states=states):
            return [(str(at), state) for at, state in enumerate(states, start=1)]
        case ApprovalAsked(call=call, rule=rule):
            return [("rule", rule), call_part(call)]
        case ApprovalGiven():
            answer = "allowed" if event.allowed else "refused"
            return [(answer, f"by {event.by}"), *([("note", event.note)] if event.note else [])]
        case AttemptStarted():
            told = [("told", event.lessons)] if event.lessons else []
            return [("attempt", f"{event.attempt} of {event.of}, for {event.objective}"), *told]
        case AttemptChosen():
            return [("attempt", event.attempt), ("reason", event.reason)]
        case Reviewed():
            return [
                ("review", "blocks" if event.blocked else "lets pass"),
                *([("decision", event.decision)] if event.decision else []),
                ("summary", event.summary),
                *((f"{n.path}:{n.line or ''}", f"{n.level}: {n.text}") for n in event.notes),
            ]


def _resources(used: ResourcesUsed) -> Iterable[Part]:
    measured = (
        ("CPU seconds", used.cpu_seconds, 1),
        ("peak memory, MiB", used.peak_memory_bytes, 1 << 20),
        ("disk, MiB", used.disk_bytes, 1 << 20),
        ("seconds", used.wall_seconds, 1),
        ("of these frozen", used.frozen_seconds, 1),
        ("memory, MiB seconds", used.memory_mib_seconds, 1),
    )
    parts = [
        (name, "not known" if value is None else f"{value / unit:.1f}")
        for name, value, unit in measured
    ]
    return parts if used.cost is None else [*parts, ("cost", format_usd(used.cost))]


def _work_parts(event: _Work) -> Iterable[Part]:
    step: Part = ("step", event.step)
    match event:
        case StepStarted():
            return [("step", f"{event.step} {event.kind}, for {event.objective}")]
        case ModelCallIntended():
            asked = [("conversation", event.conversation), ("model", event.model)]
            return [step, *asked, *(part for m in event.messages for part in _message(m))]
        case ModelCallDone():
            return [step, *_routing(event), *_message(event.message)]
        case ModelCallFailed():
            status = "none" if event.status is None else event.status
            return [step, ("status", status), ("code", event.code), ("error", event.error)]
        case ToolCallIntended():
            return [step, call_part(event.call)]
        case ToolCallDone(result=result):
            took = ("seconds", f"{event.seconds:.1f}")
            return [step, took, ("error" if result.is_error else "result", result.content)]


def _tests(report: TestReport) -> Iterable[Part]:
    return [
        ("command", report.command),
        ("result", report_text(report)),
        ("failed", "\n".join(report.failed) or "none"),
        ("seconds", f"{report.seconds:.1f}"),
        ("output", report.output),
    ]


def _message(message: Message) -> Iterable[Part]:
    yield message.role, message.content
    if isinstance(message, AssistantMessage):
        if message.reasoning:
            yield "reasoning", message.reasoning
        yield from map(call_part, message.tool_calls)


def _routing(done: ModelCallDone) -> Iterable[Part]:
    cost = done.routing.cost_micros
    return [
        ("request", done.request_id),
        ("model", f"{done.routing.model} ({done.routing.reason})"),
        ("tokens", f"{done.usage.input_tokens:,} in, {done.usage.output_tokens:,} out"),
        ("cost", "unpriced" if cost is None else format_usd(cost)),
        ("took", f"{done.latency_ms / 1000:.1f} s, ended by {done.finish_reason}"),
    ]
