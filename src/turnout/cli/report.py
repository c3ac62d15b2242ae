"""A finished run on the screen, as a JSON object, and as an exit code."""

from collections import Counter
from typing import Final

import click

from turnout.cli.terminal import coloured_diff, plural, safe
from turnout.core.json import JsonObject
from turnout.core.money import format_usd
from turnout.core.runs import TestReport, Verdict
from turnout.runs.export import result_object
from turnout.runs.summary import RunResult

__all__ = ["cost_text", "exit_code", "report_text", "result_json", "result_text"]

_GOOD: Final = frozenset({"resolved", "no_regression"})
_UNFIT_STATUS: Final = frozenset({None, 401, 402, 404, 429, 502, 503, 504})
"""Answers of the gateway after which it is the model's side that has to be mended."""


def exit_code(result: RunResult) -> int:
    """Return the exit code of `turnout run`, as its help documents it."""
    verdict = result.verdict.name if result.verdict else None
    last = result.failed_calls[-1] if result.failed_calls else None
    if result.outcome in {"capped", "refused"}:
        return 3
    if verdict in _GOOD:
        return 0
    if verdict == "no_tests" and result.patch and result.outcome == "answered":
        return 0
    if result.outcome == "failed" and last is not None and last.status in _UNFIT_STATUS:
        return 4
    return 1


def result_json(result: RunResult, code: int, delivery: JsonObject | None) -> JsonObject:
    """Return the object that `turnout run --json` prints."""
    return {**result_object(result), "delivery": delivery, "exit_code": code}


def result_text(result: RunResult, *, colour: bool) -> str:
    """Return a finished run for a person: diff, explanation, verdict and what it took."""
    parts = []
    if result.patch:
        diff = result.patch.diff.decode(errors="backslashreplace")
        parts.append(coloured_diff(diff, colour=colour))
    if result.explanation:
        parts.append(safe(result.explanation.strip()))
    summary = [_verdict_text(result.verdict, colour=colour), _ending(result), _spent(result)]
    parts.append("\n".join(line for line in summary if line))
    return "\n\n".join(parts)


def cost_text(result: RunResult) -> str:
    """Return what a run cost so far, and whether part of it has no known price."""
    if result.priced:
        return format_usd(result.cost)
    return f"{format_usd(result.cost)} + unpriced" if result.cost else "unpriced"


def report_text(report: TestReport) -> str:
    """Return what a run of the tests showed, in a few words."""
    if not report.found:
        return "none found"
    if report.timed_out:
        return f"timed out after {report.seconds:.0f} s"
    if report.passed or report.failed:
        return f"{len(report.failed)} failed, {len(report.passed)} passed"
    return "passed" if report.ok else f"failed (exit status {report.exit_code})"


def _verdict_text(verdict: Verdict | None, *, colour: bool) -> str:
    if verdict is None:
        return "Verdict: none; the run was stopped before the tests could judge."
    good = verdict.name in _GOOD
    shade = "green" if good else "yellow" if verdict.name == "no_tests" else "red"
    name = click.style(verdict.name, fg=shade, bold=True) if colour else verdict.name
    return f"Verdict: {name}. {safe(verdict.detail)}"


def _ending(result: RunResult) -> str:
    return f"Outcome: {result.outcome or 'still running'}. {safe(result.reason)}".strip()


def _spent(result: RunResult) -> str:
    models = Counter(call.routing.model for call in result.calls)
    named = ", ".join(f"{safe(model)} × {n}" for model, n in models.most_common())
    tokens = f"{result.usage.input_tokens:,} in, {result.usage.output_tokens:,} out"
    took = f"{plural(result.steps, 'step')}, {plural(len(result.calls), 'model call')}"
    return (
        f"{took}{f' ({named})' if named else ''}, tokens {tokens}, "
        f"{cost_text(result)}, {result.seconds:.0f} s"
    )
