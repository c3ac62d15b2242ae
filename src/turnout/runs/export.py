"""A run's result as the JSON object that scripts read."""

from turnout.core.events import ModelCallDone, ModelCallFailed, ResourcesUsed, Reviewed
from turnout.core.json import JsonObject, JsonValue
from turnout.core.runs import Connection, FileChange, TestReport, Verdict
from turnout.core.usage import Usage
from turnout.runs.summary import AttemptUse, Consent, RunResult, ToolUse

__all__ = ["result_object"]


def result_object(result: RunResult) -> JsonObject:
    """Return the fields that `turnout run --json` documents, all but `exit_code`."""
    return {
        "run_id": result.run_id,
        "outcome": result.outcome,
        "reason": result.reason,
        "verdict": _verdict(result.verdict) if result.verdict else None,
        "diff": result.patch.diff.decode(errors="backslashreplace"),
        "files": [_file(change) for change in result.patch.files],
        "excluded": list(result.patch.excluded),
        "explanation": result.explanation,
        "plan": result.plan,
        "plan_steps": _plan_steps(result),
        "success_condition": result.planned.success if result.planned else "",
        "attempts": [_attempt(each) for each in result.attempts],
        "chosen_attempt": result.chosen.attempt if result.chosen else None,
        "kind": result.task.kind,
        "review": _review(result.review) if result.review else None,
        "approvals": [_consent(each) for each in result.consents],
        "prompt": result.task.prompt,
        "repository": result.task.repository,
        "base_commit": result.base_commit,
        "strategy": result.strategy,
        "isolation": result.workspace.isolation if result.workspace else None,
        "tests_before": _tests(result.tests_before) if result.tests_before else None,
        "tests_after": _tests(result.tests_after) if result.tests_after else None,
        "cost_micros": result.cost,
        "priced": result.priced,
        "usage": _usage(result.usage),
        "model_calls": [_call(call) for call in result.calls],
        "failed_calls": [_failed(call) for call in result.failed_calls],
        "tool_calls": [_tool(use) for use in result.tool_calls],
        "connections": [_connection(each) for each in result.connections],
        "resources": _resources(result.resources) if result.resources else None,
        "steps": result.steps,
        "seconds": round(result.seconds, 3),
        "warnings": list(result.warnings),
    }


def _verdict(verdict: Verdict) -> JsonObject:
    return {
        "name": verdict.name,
        "failed_before": verdict.failed_before,
        "passes_after": verdict.passes_after,
        "tests_untouched": verdict.tests_untouched,
        "touched": list(verdict.touched),
        "new_tests": list(verdict.new_tests),
        "detail": verdict.detail,
    }


def _plan_steps(result: RunResult) -> list[JsonValue]:
    if result.planned is None:
        return []
    items = result.planned.steps
    states = result.progress.states if result.progress else ("open",) * len(items)
    return [{"text": t, "state": s} for t, s in zip(items, states, strict=False)]


def _attempt(use: AttemptUse) -> JsonObject:
    return {
        "attempt": use.started.attempt,
        "objective": use.started.objective,
        "outcome": use.end.outcome if use.end else None,
        "reason": use.end.reason if use.end else "",
        "diff": use.patch.diff.decode(errors="backslashreplace"),
        "tests_after": _tests(use.tests) if use.tests else None,
        "review": _review(use.review) if use.review else None,
    }


def _review(review: Reviewed) -> JsonObject:
    return {
        "blocked": review.blocked,
        "decided": review.decided,
        "decision": review.decision,
        "summary": review.summary,
        "notes": [
            {
                "path": note.path,
                "line": note.line,
                "severity": note.level,
                "text": note.text,
                "blocks": note.blocks,
            }
            for note in review.notes
        ],
    }


def _consent(consent: Consent) -> JsonObject:
    call, given = consent.asked.call, consent.given
    return {
        "step": consent.asked.step,
        "name": call.name,
        "arguments": call.arguments,
        "rule": consent.asked.rule,
        "allowed": given.allowed if given else None,
        "by": given.by if given else None,
        "note": given.note if given else "",
    }


def _file(change: FileChange) -> JsonObject:
    return {
        "path": change.path,
        "status": change.status,
        "added_lines": change.added_lines,
        "deleted_lines": change.deleted_lines,
    }


def _tests(report: TestReport) -> JsonObject:
    return {
        "command": report.command,
        "exit_code": report.exit_code,
        "passed": list(report.passed),
        "failed": list(report.failed),
        "seconds": round(report.seconds, 3),
        "timed_out": report.timed_out,
        "found": report.found,
    }


def _usage(usage: Usage) -> JsonObject:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cache_read_input_tokens,
        "cache_creation_input_tokens": usage.cache_creation_input_tokens,
        "estimated": usage.estimated,
    }


def _call(call: ModelCallDone) -> JsonObject:
    return {
        "request_id": call.request_id,
        "step": call.step,
        "kind": call.kind,
        "model": call.routing.model,
        "deployment": call.routing.deployment,
        "objective": call.routing.objective,
        "cost_micros": call.routing.cost_micros,
        "tokens": _usage(call.usage),
        "latency_ms": call.latency_ms,
        "sticky": call.routing.sticky,
        "fallback": call.routing.fallback,
        "reason": call.routing.reason,
        "connection_calls": list(call.routing.connection_calls),
    }


def _failed(call: ModelCallFailed) -> JsonObject:
    return {
        "step": call.step,
        "kind": call.kind,
        "status": call.status,
        "code": call.code,
        "error": call.error,
    }


def _connection(asked: Connection) -> JsonObject:
    return {
        "host": asked.host,
        "port": asked.port,
        "allowed": asked.allowed,
        "reason": asked.reason,
        "sent_bytes": asked.sent_bytes,
        "received_bytes": asked.received_bytes,
        "secrets": list(asked.secrets),
    }


def _resources(used: ResourcesUsed) -> JsonObject:
    return {
        "cpu_seconds": used.cpu_seconds,
        "peak_memory_bytes": used.peak_memory_bytes,
        "disk_bytes": used.disk_bytes,
        "wall_seconds": round(used.wall_seconds, 3),
        "frozen_seconds": round(used.frozen_seconds, 3),
        "memory_mib_seconds": None
        if used.memory_mib_seconds is None
        else round(used.memory_mib_seconds, 3),
        "cost_micros": used.cost,
    }


def _tool(use: ToolUse) -> JsonObject:
    return {
        "step": use.step,
        "name": use.call.name,
        "arguments": use.call.arguments,
        "result": use.result.content if use.result else None,
        "is_error": use.result.is_error if use.result else None,
        "seconds": None if use.seconds is None else round(use.seconds, 3),
    }
