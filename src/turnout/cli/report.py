"""A finished run on the screen, as a JSON object, and as an exit code."""

import shlex
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TextIO

import click
from rich.console import Console
from rich.markdown import Markdown
from rich.text import Text

from turnout.cli.terminal import coloured_diff, plural, safe, takes_colour
from turnout.cli.tool_lines import call_block
from turnout.core.events import ApprovalAsked, ReviewDecision, Reviewed
from turnout.core.ids import RunId
from turnout.core.json import JsonObject
from turnout.core.money import format_usd
from turnout.core.runs import TestReport
from turnout.runs.export import result_object
from turnout.runs.summary import RunResult

__all__ = [
    "Screen",
    "closing_text",
    "cost_text",
    "exit_code",
    "judged_text",
    "report_text",
    "result_json",
    "review_text",
    "screen_of",
    "waiting_text",
]

_SHOWN: Final = 5
"""Paths of one list; `turnout runs show --full` has all of them."""

_LONGEST_CALL: Final = 2_000
"""Characters of a call that waits, with its arguments."""

_GOOD: Final = frozenset({"resolved", "no_regression"})
_SHADES: Final[dict[ReviewDecision, str]] = {
    "approve": "green",
    "annotate": "yellow",
    "block": "red",
}
_UNFIT_STATUS: Final = frozenset({None, 401, 402, 404, 429, 502, 503, 504})
"""Answers of the gateway after which it is the model's side that has to be mended."""


@dataclass(frozen=True, slots=True)
class Screen:
    """What a result is shown on."""

    width: int | None = None
    """Columns of a terminal; None for a pipe or a file, which get text as it is."""
    colour: bool = False
    server: str | None = None
    """What `--server` said: commands that are told say it again."""

    def show(self, text: str) -> None:
        """Print on standard output."""
        click.echo(text, color=self.colour)


def screen_of(stream: TextIO, *, colour: bool, server: str | None = None) -> Screen:
    """Return the screen that a stream leads to; `colour` says whether the user wants any."""
    width = shutil.get_terminal_size().columns if stream.isatty() else None
    return Screen(width, takes_colour(stream, allowed=colour), server)


def exit_code(result: RunResult) -> int:
    """Return the exit code of `turnout run`, or of `turnout review`, as their help documents it."""
    verdict = result.verdict.name if result.verdict else None
    if result.outcome in {"capped", "refused"}:
        return 3
    if result.outcome == "cancelled":
        return 130
    if result.task.kind == "review" and (review := result.review) is not None and review.decided:
        return 1 if review.blocked else 0
    if result.blocked and result.task.kind == "change":
        return 1
    if verdict in _GOOD:
        return 0
    if verdict == "no_tests" and result.patch and result.outcome == "answered":
        return 0
    return 4 if result.outcome == "failed" and _unfit(result) else 1


def _unfit(result: RunResult) -> bool:
    """Whether the surroundings failed: no workspace could be made, or no model answered."""
    last = result.failed_calls[-1] if result.failed_calls else None
    return result.workspace is None or (last is not None and last.status in _UNFIT_STATUS)


def result_json(result: RunResult, code: int, delivery: JsonObject | None) -> JsonObject:
    """Return the object that `turnout run --json` prints."""
    return {**result_object(result), "delivery": delivery, "exit_code": code}


def judged_text(result: RunResult, screen: Screen) -> str:
    """Return the diff and what our tests say of it; of a review, its decision."""
    if result.task.kind == "review":
        return _decision_text(result, colour=screen.colour)
    notes = [_verdict_text(result, colour=screen.colour)]
    if result.verdict is not None and result.verdict.new_tests:
        notes.append(f"New tests: {_listed(result.verdict.new_tests)}")
    if result.patch.excluded:
        notes.append(f"Left out of the diff: {_listed(result.patch.excluded)}")
    judged = "\n".join(notes)
    if not result.patch:
        return judged
    diff = result.patch.diff.decode(errors="backslashreplace")
    return f"{coloured_diff(diff, colour=screen.colour)}\n\n{judged}"


def _listed(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return safe(", ".join(paths[:_SHOWN])) + more


def closing_text(result: RunResult, screen: Screen) -> str:
    """Return what comes after the verdict: the explanation, how the run ended, what it took."""
    ending = f"{_ending(result, screen.server)}\n{_spent(result)}"
    if result.review is not None:
        alone = result.task.kind == "review"
        ending = f"{safe(review_text(result.review, alone=alone))}\n\n{ending}"
    explanation = result.explanation.strip()
    return f"{_markdown(explanation, screen)}\n\n{ending}" if explanation else ending


def _markdown(text: str, screen: Screen) -> str:
    """Lay Markdown out for a terminal; elsewhere it stays as it was written."""
    if screen.width is None:
        return safe(text)
    console = Console(width=screen.width, force_terminal=True, color_system="standard")
    # Links stay text: what is clicked is what is read. Entities such as `&#x202e;` become
    # characters only here, so what is laid out is made safe once more.
    lines = console.render_lines(Markdown(safe(text), hyperlinks=False), pad=False)
    with console.capture() as shown:
        for line in lines:
            parts = [(safe(part.text), part.style or "") for part in line if not part.control]
            console.print(Text.assemble(*parts), soft_wrap=True)
    return "\n".join(line.rstrip() for line in shown.get().strip("\n").split("\n"))


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


def review_text(review: Reviewed, *, alone: bool = False) -> str:
    """Return what a review says, a line for each of its notes.

    `alone`: it is what the run was for, whose decision is told beside.
    """
    head = "Review, which blocks the change" if review.blocked and not alone else "Review"
    notes = [
        f"  {note.path}{'' if note.line is None else f':{note.line}'} {note.level}: {note.text}"
        for note in review.notes
    ]
    return "\n".join([f"{head}: {review.summary}", *notes])


def waiting_text(run_id: RunId, asked: ApprovalAsked, server: str | None = None) -> str:
    """Return the call that a run waits for, and how a person decides on it."""
    block, at = call_block(asked.call), f" --server {shlex.quote(server)}" if server else ""
    if len(block) > _LONGEST_CALL:
        whole = f"    … all of it: turnout runs show {run_id} --full{at}"
        block = f"{block[:_LONGEST_CALL]}\n{whole}"
    named = f"{run_id} --call {shlex.quote(asked.call.id)}{at}"
    ways = [f"    turnout runs {verb} {named}" for verb in ("approve", "reject")]
    return safe("\n".join([f"It waits for approval (rule {asked.rule}):", block, *ways]))


def _verdict_text(result: RunResult, *, colour: bool) -> str:
    verdict = result.verdict
    if verdict is None:
        if result.outcome is None:
            return "Verdict: none yet; the run has not ended."
        return "Verdict: none; the run was stopped before the tests could judge."
    good = verdict.name in _GOOD
    shade = "green" if good else "yellow" if verdict.name == "no_tests" else "red"
    name = click.style(verdict.name, fg=shade, bold=True) if colour else verdict.name
    return f"Verdict: {name}. {safe(verdict.detail)}"


def _decision_text(result: RunResult, *, colour: bool) -> str:
    review = result.review
    if review is None or review.decision is None:
        return "Decision: none." if result.outcome else "Decision: none yet."
    shade = _SHADES[review.decision]
    name = click.style(review.decision, fg=shade, bold=True) if colour else review.decision
    return f"Decision: {name}."


def _ending(result: RunResult, server: str | None) -> str:
    if result.outcome is not None:
        # What a review has said stands above.
        told = result.task.kind == "review" and result.review is not None
        return f"Outcome: {result.outcome}. {'' if told else safe(result.reason)}".strip()
    newest = result.consents[-1] if result.consents else None
    if newest is None or newest.given is not None:
        return "Outcome: none yet."
    return f"Outcome: none yet. {waiting_text(result.run_id, newest.asked, server)}"


def _spent(result: RunResult) -> str:
    models = Counter(call.routing.model for call in result.calls)
    named = ", ".join(f"{safe(model)} × {n}" for model, n in models.most_common())
    tokens = f"{result.usage.input_tokens:,} in, {result.usage.output_tokens:,} out"
    took = f"{plural(result.steps, 'step')}, {plural(len(result.calls), 'model call')}"
    machines = result.resources.cost if result.resources else None
    beside = "" if machines is None else f" and {format_usd(machines)} for sandboxes"
    return (
        f"{took}{f' ({named})' if named else ''}, tokens {tokens}, "
        f"{cost_text(result)}{beside}, {result.seconds:.0f} s"
    )
