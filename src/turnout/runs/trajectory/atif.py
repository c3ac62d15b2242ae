"""A run in the Agent Trajectory Interchange Format, version 1.7.

What users, models and tools said is there as it was said. What else belongs to a run (its tests,
what people decided, its verdict) is there as steps of the system, in their place.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import orjson

from turnout import __version__
from turnout.core.events import (
    ApprovalGiven,
    AttemptStarted,
    Entry,
    Event,
    HistoryCondensed,
    ModelCallDone,
    ModelCallFailed,
    ModelCallIntended,
    Notice,
    RunEnded,
    RunResumed,
    TestsRan,
    ToolCallDone,
    ToolCallIntended,
    VerdictGiven,
)
from turnout.core.ids import ToolCallId
from turnout.core.json import JsonObject, JsonValue, read_json
from turnout.core.messages import SystemMessage, UserMessage
from turnout.core.money import Micros
from turnout.core.tools import ToolCall, ToolResult
from turnout.core.usage import Usage
from turnout.runs.summary import RunResult, fold

__all__ = ["SCHEMA", "atif_object"]

SCHEMA: Final = "ATIF-v1.7"
_NOTES: Final = (
    "Steps of the system that are no messages to a model carry their kind in `extra.event`; steps "
    "of the agent with an `llm_call_count` of 0 are tool calls that no model had asked for."
)


@dataclass(slots=True)
class _Step:
    source: str
    at: datetime
    message: str
    extra: JsonObject
    more: JsonObject = field(default_factory=dict)
    calls: list[ToolCall] = field(default_factory=list)
    results: list[JsonValue] = field(default_factory=list)


def atif_object(entries: Sequence[Entry]) -> JsonObject:
    """Return a run that somebody has begun, as far as it is."""
    result = fold(entries)
    writer = _Writer()
    writer.say("user", entries[0].at, result.task.prompt, {"event": "run_started"})
    for entry in entries:
        writer.add(entry)
    steps: list[JsonValue] = [_shown(n, step) for n, step in enumerate(writer.steps, start=1)]
    return {
        "schema_version": SCHEMA,
        "session_id": result.run_id,
        "trajectory_id": result.run_id,
        "agent": _agent(result),
        "steps": steps,
        "notes": _NOTES,
        "final_metrics": _final(result, len(steps)),
        "extra": _extra(result),
    }


@dataclass(slots=True)
class _Writer:
    """Makes steps of events, as they come."""

    steps: list[_Step] = field(default_factory=list)
    waiting: dict[ToolCallId, _Step] = field(default_factory=dict)
    """The step of each call that has no result yet."""

    def say(self, source: str, at: datetime, message: str, extra: JsonObject) -> None:
        """Add a step of the user or the system."""
        self.steps.append(_Step(source, at, message, extra))

    def add(self, entry: Entry) -> None:
        """Add what an event has to say."""
        match entry.event:
            case ModelCallIntended() as call:
                self._messages(call, entry.at)
            case ModelCallDone() as answer:
                self._calls(_answer(answer, entry.at))
            case ToolCallIntended() as intent:
                self._intended(intent, entry.at)
            case ToolCallDone() as done:
                self._result(done)
            case TestsRan() as ran:
                text = f"Our own run of the tests {ran.phase} the work."
                step = _Step("system", entry.at, text, _tests(ran))
                step.results.append({"content": ran.report.output})
                self.steps.append(step)
            case event:
                text = _sentence(event)
                if text:
                    self.say("system", entry.at, text, {"event": event.type})

    def _messages(self, call: ModelCallIntended, at: datetime) -> None:
        extra: JsonObject = {
            "event": call.type,
            "step": call.step,
            "kind": call.kind,
            "conversation": call.conversation,
        }
        for message in call.messages:
            if isinstance(message, SystemMessage | UserMessage):
                self.say(message.role, at, message.content, extra)

    def _intended(self, intent: ToolCallIntended, at: datetime) -> None:
        """Add a call of ours; one that a model asked for is in the step of its answer."""
        if intent.call.id not in self.waiting:
            extra: JsonObject = {"event": intent.type, "step": intent.step}
            self._calls(_Step("agent", at, "", extra, {"llm_call_count": 0}, [intent.call]))

    def _calls(self, step: _Step) -> None:
        self.steps.append(step)
        self.waiting.update({call.id: step for call in step.calls})

    def _result(self, done: ToolCallDone) -> None:
        step = self.waiting.pop(done.result.call_id, None)
        if step is not None:
            step.results.append(_observed(done.result, done.seconds))


def _answer(answer: ModelCallDone, at: datetime) -> _Step:
    message, routing = answer.message, answer.routing
    extra: JsonObject = {
        "event": answer.type,
        "step": answer.step,
        "kind": answer.kind,
        "conversation": answer.conversation,
        "request_id": answer.request_id,
        "deployment": routing.deployment,
        "objective": routing.objective,
        "finish_reason": answer.finish_reason,
        "latency_ms": answer.latency_ms,
    }
    more: JsonObject = {
        "model_name": routing.model,
        "llm_call_count": 1,
        "metrics": _metrics(answer.usage, routing.cost_micros),
        **({"reasoning_content": message.reasoning} if message.reasoning else {}),
    }
    return _Step("agent", at, message.content, extra, more, list(message.tool_calls))


def _sentence(event: Event) -> str:
    """Return what an event says to a reader; nothing for one that is only for the machine."""
    match event:
        case Notice():
            return event.text
        case RunResumed():
            return f"A worker goes on with the run: segment {event.segment}."
        case AttemptStarted():
            return f"Attempt {event.attempt} of {event.of} begins. {event.lessons}".strip()
        case HistoryCondensed():
            return event.text
        case ModelCallFailed():
            return f"A model call failed: {event.code}: {event.error}"
        case ApprovalGiven():
            decided = "allowed" if event.allowed else "refused"
            return f"Call {event.call_id} was {decided} by {event.by}. {event.note}".strip()
        case VerdictGiven():
            return f"{event.verdict.name}: {event.verdict.detail}"
        case RunEnded():
            return f"{event.outcome}: {event.reason}"
        case _:
            return ""


def _tests(ran: TestsRan) -> JsonObject:
    report = ran.report
    return {
        "event": ran.type,
        "phase": ran.phase,
        "command": report.command,
        "exit_code": report.exit_code,
        "passed": len(report.passed),
        "failed": list(report.failed),
    }


def _observed(result: ToolResult, seconds: float) -> JsonObject:
    return {
        "source_call_id": result.call_id,
        "content": result.content,
        "extra": {"is_error": result.is_error, "seconds": round(seconds, 3)},
    }


def _shown(number: int, step: _Step) -> JsonObject:
    return {
        "step_id": number,
        "timestamp": step.at.isoformat(),
        "source": step.source,
        "message": step.message,
        **step.more,
        **({"tool_calls": [_call(call) for call in step.calls]} if step.calls else {}),
        **({"observation": {"results": step.results}} if step.results else {}),
        "extra": step.extra,
    }


def _call(call: ToolCall) -> JsonObject:
    shown: JsonObject = {"tool_call_id": call.id, "function_name": call.name}
    try:
        given = read_json(call.arguments.encode(errors="surrogatepass"))
    except orjson.JSONDecodeError:
        given = None
    if isinstance(given, dict):
        return {**shown, "arguments": given}
    return {**shown, "arguments": {}, "extra": {"unparsed": call.arguments}}


def _metrics(usage: Usage, cost: Micros | None) -> JsonObject:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "cached_tokens": usage.cache_read_input_tokens,
        **({} if cost is None else {"cost_usd": cost / 1_000_000}),
        "extra": {"estimated": usage.estimated},
    }


def _final(result: RunResult, steps: int) -> JsonObject:
    return {
        "total_prompt_tokens": result.usage.input_tokens,
        "total_completion_tokens": result.usage.output_tokens,
        "total_cached_tokens": result.usage.cache_read_input_tokens,
        "total_steps": steps,
        **({"total_cost_usd": result.cost / 1_000_000} if result.priced else {}),
        "extra": {"cost_micros": result.cost, "priced": result.priced},
    }


def _agent(result: RunResult) -> JsonObject:
    extra: JsonObject = {"strategy": result.strategy, "surface": result.task.surface}
    return {"name": "turnout", "version": __version__, "extra": extra}


def _extra(result: RunResult) -> JsonObject:
    return {
        "repository": result.task.repository,
        "base_commit": result.base_commit,
        "outcome": result.outcome,
        "verdict": result.verdict.name if result.verdict else None,
        "diff": result.patch.diff.decode(errors="backslashreplace"),
    }
