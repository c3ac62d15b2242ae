"""Everything that one entry of a record says, in parts that can be looked at or taken whole."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from turnout.core.events import (
    ApprovalAsked,
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
    PlanMade,
    Reviewed,
    TestsRan,
    ToolCallDone,
    ToolCallIntended,
    WorkspaceReady,
)
from turnout.core.messages import AssistantMessage, Message
from turnout.core.receipts import Candidate, Receipt
from turnout.core.runs import TestReport
from turnout.core.tools import ToolCall, ToolResult

__all__ = ["Detail", "Part", "arguments_of", "detail_of"]

_LONGEST_JSON: Final = 200_000
"""Characters above which arguments are shown as they came."""


@dataclass(frozen=True, slots=True)
class Part:
    """A text, and what it is."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Detail:
    """An entry."""

    run_id: str
    entry: Entry
    parts: tuple[Part, ...]
    facts: tuple[tuple[str, str], ...] = ()
    receipt: Receipt | None = None
    """Of a model call, as far as it is kept."""

    chosen: str = ""
    """The deployment that answered it."""

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The deployments that a model call might have gone to."""
        decision = self.receipt.decision if self.receipt else None
        return decision.candidates if decision else ()


def detail_of(entry: Entry, receipt: Receipt | None = None) -> Detail:
    """Return what an entry says; `receipt` is that of its model call."""
    event = entry.event
    parts = tuple(part for part in _parts(event) if part.text)
    if isinstance(event, ModelCallDone):
        facts = tuple(_routing(event, receipt))
        chosen = event.routing.deployment
        return Detail(entry.run_id, entry, parts, facts, receipt, chosen)
    return Detail(entry.run_id, entry, parts, tuple(_facts(event)))


def _parts(event: Event) -> Iterable[Part]:
    match event:
        case ModelCallIntended(messages=messages):
            return [part for message in messages for part in _said(message)]
        case ModelCallDone(message=message):
            return _said(message)
        case ModelCallFailed(error=error):
            return [Part("Error", error)]
        case ToolCallIntended(call=call) | ApprovalAsked(call=call):
            return [arguments_of(call)]
        case ToolCallDone(result=result):
            return _result(result)
        case TestsRan(report=report):
            return _report(report)
        case Reviewed():
            notes = "\n".join(
                f"{note.path or 'the whole change'}{f':{note.line}' if note.line else ''}: "
                f"{note.level}: {note.text}"
                for note in event.notes
            )
            return [Part("Summary", event.summary), Part("Notes", notes)]
        case _:
            return _texts(event)


def _texts(event: Event) -> Iterable[Part]:
    match event:
        case PlanMade() | Explained() | HistoryCondensed() | Notice():
            return [Part("Text", event.text)]
        case LoopEnded(answer=answer):
            return [Part("Answer", answer)]
        case WorkspaceReady(requirements=requirements):
            return [Part("Requirements", "\n".join(requirements))]
        case ConnectionsAsked(connections=connections):
            lines = (
                f"{c.host}:{c.port} {'allowed' if c.allowed else 'refused'} {c.reason}".rstrip()
                + f" ({c.sent_bytes:,} bytes out, {c.received_bytes:,} in)"
                for c in connections
            )
            return [Part("Asked", "\n".join(lines))]
        case _:
            return []


def _said(message: Message) -> Iterator[Part]:
    if isinstance(message, AssistantMessage):
        yield Part("Reasoning", message.reasoning)
        yield Part("Answer", message.content)
        for call in message.tool_calls:
            yield Part(f"Asks for {call.name}", arguments_of(call).text)
    else:
        yield Part(message.role.capitalize(), message.content)


def arguments_of(call: ToolCall) -> Part:
    """Return the arguments of a call, by name where they are an object, else as they came."""
    try:
        given = json.loads(call.arguments) if len(call.arguments) <= _LONGEST_JSON else None
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        return Part("Arguments", call.arguments)
    return Part("Arguments", "\n".join(_argument(name, value) for name, value in given.items()))


def _argument(name: str, value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"{name}:\n{text}" if "\n" in text else f"{name}: {text}"


def _result(result: ToolResult) -> Iterable[Part]:
    said = Part("Error" if result.is_error else "Result", result.content)
    return [said, Part("Whole output", result.full)]


def _report(report: TestReport) -> Iterable[Part]:
    return [
        Part("Command", report.command),
        Part("Failed", "\n".join(report.failed)),
        Part("Passed", "\n".join(report.passed)),
        Part("Output", report.output),
    ]


def _routing(done: ModelCallDone, receipt: Receipt | None) -> Iterator[tuple[str, str]]:
    routing = done.routing
    yield "Why this model", routing.reason
    yield "Model", f"{routing.model} at {routing.provider} ({routing.deployment})"
    yield "Objective", f"{routing.objective}; task {routing.task} ({routing.task_source})"
    revision = routing.policy_revision
    number = f"revision {revision}" if revision else "as the configuration file has it"
    yield "Policy", f"{receipt.policy}, {number}" if receipt and receipt.policy else number
    yield "Ended by", done.finish_reason
    yield "Request", done.request_id
    if routing.connection_calls:
        yield "Connections", ", ".join(routing.connection_calls)


def _facts(event: Event) -> Iterator[tuple[str, str]]:
    match event:
        case ModelCallIntended():
            yield "Conversation", event.conversation
            yield "Model asked for", event.model
        case ModelCallFailed():
            yield "Status", "none" if event.status is None else str(event.status)
            yield "Code", event.code
        case ToolCallDone(result=result):
            if result.elided_chars:
                yield "Left out for the model", f"{result.elided_chars:,} characters"
            if result.unsure:
                yield "Unsure", "the call may have changed something"
        case ApprovalAsked(rule=rule):
            yield "Rule", rule
        case WorkspaceReady():
            yield "Walls", event.isolation
            yield "Test command", event.test_command or "none"
        case TestsRan(report=report):
            yield "Exit code", "none" if report.exit_code is None else str(report.exit_code)
        case _:
            return
