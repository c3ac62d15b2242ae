"""The whole record of a run, every event with all that it holds, for a person to read."""

import json
from collections.abc import Iterable
from textwrap import indent
from typing import assert_never

from turnout.cli.report import report_text
from turnout.cli.terminal import safe
from turnout.cli.tool_lines import connection_text
from turnout.core.events import (
    ConnectionsAsked,
    Entry,
    Event,
    Explained,
    LoopEnded,
    ModelCallDone,
    ModelCallFailed,
    ModelCallIntended,
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
from turnout.core.messages import AssistantMessage, Message
from turnout.core.money import format_usd
from turnout.core.runs import TestReport
from turnout.core.tools import ToolCall

__all__ = ["entry_text"]

Part = tuple[str, object]
"""A heading and what stands under it; a text of several lines is set off as a block."""


def entry_text(entry: Entry) -> str:
    """Return an entry as readable text that cannot steer a terminal."""
    head = f"#{entry.seq} {entry.at:%H:%M:%S} {entry.event.type}"
    return safe("\n".join([head, *map(_part_text, _parts(entry.event))]))


def _part_text(part: Part) -> str:
    heading, value = part
    text = str(value).rstrip("\n")
    if "\n" not in text:
        return f"    {heading}: {text}"
    return f"    {heading}:\n{indent(text, ' ' * 8)}"


def _parts(event: Event) -> Iterable[Part]:
    match event:
        case RunStarted(task=task):
            return [
                ("task", task.prompt),
                ("repository", task.repository),
                ("base", f"{task.base} ({event.base_commit})"),
                ("strategy", event.strategy),
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
            touched = [("touched", ", ".join(verdict.touched))] if verdict.touched else []
            return [("verdict", verdict.name), ("detail", verdict.detail), *touched]
        case LoopEnded():
            return [("outcome", event.outcome), ("reason", event.reason), ("answer", event.answer)]
        case RunEnded():
            return [("outcome", event.outcome), ("reason", event.reason)]
        case ConnectionsAsked(connections=connections):
            return [("asked", connection_text(each)) for each in connections]
        case ResourcesUsed():
            return _resources(event)
        case Notice():
            return [(event.level, event.text)]
        case PlanMade() | Explained():
            return [("text", event.text)]
        case _:
            return _step_parts(event)


def _resources(used: ResourcesUsed) -> Iterable[Part]:
    measured = (
        ("CPU seconds", used.cpu_seconds, 1),
        ("peak memory, MiB", used.peak_memory_bytes, 1 << 20),
        ("disk, MiB", used.disk_bytes, 1 << 20),
        ("seconds", used.wall_seconds, 1),
        ("of these frozen", used.frozen_seconds, 1),
    )
    return [
        (name, "not known" if value is None else f"{value / unit:.1f}")
        for name, value, unit in measured
    ]


def _step_parts(
    event: StepStarted
    | ModelCallIntended
    | ModelCallDone
    | ModelCallFailed
    | ToolCallIntended
    | ToolCallDone,
) -> Iterable[Part]:
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
            return [step, _call(event.call)]
        case ToolCallDone(result=result):
            took = ("seconds", f"{event.seconds:.1f}")
            return [step, took, ("error" if result.is_error else "result", result.content)]
        case _:
            assert_never(event)


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
        yield from map(_call, message.tool_calls)


def _call(call: ToolCall) -> Part:
    """Return a call with its arguments one after the other, texts with their line breaks."""
    try:
        arguments = json.loads(call.arguments or "{}", strict=False)
    except (ValueError, RecursionError):
        return call.name, call.arguments
    if not isinstance(arguments, dict):
        return call.name, call.arguments
    lines = [_part_text(part).removeprefix("    ") for part in arguments.items()]
    return call.name, "\n".join(lines) or "no arguments"


def _routing(done: ModelCallDone) -> Iterable[Part]:
    cost = done.routing.cost_micros
    return [
        ("request", done.request_id),
        ("model", f"{done.routing.model} ({done.routing.reason})"),
        ("tokens", f"{done.usage.input_tokens:,} in, {done.usage.output_tokens:,} out"),
        ("cost", "unpriced" if cost is None else format_usd(cost)),
        ("took", f"{done.latency_ms / 1000:.1f} s, ended by {done.finish_reason}"),
    ]
