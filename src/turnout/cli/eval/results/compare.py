"""`turnout eval compare`: what changed from one evaluation to another."""

from collections.abc import Sequence
from pathlib import Path

import click

from turnout.cli.eval.results.forms import file_options, say_report, write_report
from turnout.cli.options import json_option
from turnout.evals.report.read import read_kept
from turnout.evals.report.two import Evaluation, compare_evaluations

__all__ = ["compare"]


@click.command(
    "compare",
    epilog="\b\nExamples:\n"
    "  turnout eval compare before.results.jsonl after.results.jsonl\n"
    "  turnout eval compare last-month.json tasks.results.jsonl --arm auto --markdown change.md\n"
    "\b\nExit codes:\n"
    "  0  they were compared, whatever that shows\n"
    "  2  wrong usage, or nothing in them can be compared",
)
@click.argument("before", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("after", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--arm", "arms", multiple=True, metavar="NAME", help="Only this; may be repeated.")
@file_options
@json_option
def compare(
    *,
    before: Path,
    after: Path,
    arms: Sequence[str],
    html: Path | None,
    markdown: Path | None,
    brief: bool,
    as_json: bool,
) -> int:
    """Compare the arms of AFTER with those of the same name in BEFORE, task by task.

    Each is a results file, or a report that was kept with --json. Only the same tasks count, in
    the same mode, equally strict. Where either has a single arm their names do not matter.
    """
    one, other = (_evaluation(path) for path in (before, after))
    found = compare_evaluations(one, other, arms)
    write_report(found, html, markdown, (before, after))
    say_report(found, brief=brief, as_json=as_json)
    return 0


def _evaluation(path: Path) -> Evaluation:
    kept = read_kept(path)
    return Evaluation(path.name, kept.trials, kept.conditions)
