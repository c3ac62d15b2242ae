"""`turnout eval report`: what results show, on the screen and in files."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from turnout.cli.eval.options import beside
from turnout.cli.eval.results.forms import file_options, say_report, write_report
from turnout.cli.options import json_option, repos_option
from turnout.errors import UsageError
from turnout.evals.grading.health import load_health
from turnout.evals.instances.load import load_instances
from turnout.evals.report.figures import summarise
from turnout.evals.report.model import SetCheck, Unfit
from turnout.evals.report.read import read_kept
from turnout.evals.report.texts import texts_of

__all__ = ["check_of", "report"]


@click.command(
    "report",
    epilog="\b\nExamples:\n"
    "  turnout eval report tasks.results.jsonl\n"
    "  turnout eval report tasks.results.jsonl --html report.html --markdown comment.md\n"
    "  turnout eval report tasks.results.jsonl --html report.html --tasks tasks.jsonl\n"
    "  turnout eval report tasks.results.jsonl --json > report.json\n"
    "\b\nExit codes:\n"
    "  0  the report was made, whatever it shows\n"
    "  2  wrong usage, or a file that holds no results",
)
@click.argument("results", type=click.Path(path_type=Path, dir_okay=False), nargs=-1, required=True)
@click.option(
    "--arm",
    metavar="NAME",
    help="Compare this one with every other; default: auto, else the first of the results.",
)
@click.option(
    "--health",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="What `eval check` found of the tasks; by default that beside RESULTS, if it is there.",
)
@click.option(
    "--tasks",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="Show what each task says, its tests and its known fix, on the HTML page.",
)
@repos_option
@file_options
@json_option
def report(
    *,
    results: Sequence[Path],
    arm: str | None,
    health: Path | None,
    tasks: Path | None,
    repos: Path | None,
    html: Path | None,
    markdown: Path | None,
    brief: bool,
    as_json: bool,
) -> int:
    """Say what the trials of RESULTS show: pass rates, costs, and how sure that is.

    Arms are compared in pairs on the tasks that both have a grade for. Where the tasks are too
    few to tell two arms apart it says so. A report that was kept with --json is read like the
    results that it was made of; several files are taken together.
    """
    kept = [read_kept(path) for path in results]
    rows = [row for each in kept for row in each.trials]
    conditions = sorted((c for each in kept for c in each.conditions), key=lambda c: c.at)
    if arm is not None and arm not in (known := {row.arm for row in rows}):
        raise UsageError(
            f"There is no arm {arm!r} in these results.",
            mend=f"There are {', '.join(sorted(known))}." if known else "They are empty.",
        )
    found = summarise(rows, conditions=conditions, arm=arm, check=check_of(results, health))
    if tasks is not None:
        instances = asyncio.run(load_instances(tasks, repositories=repos))
        found = replace(found, texts=texts_of(instances))
    write_report(found, html, markdown, results)
    say_report(found, brief=brief, as_json=as_json)
    return 0


def check_of(results: Sequence[Path], health: Path | None) -> SetCheck | None:
    """Return what was found of the tasks of results: in a file, else beside them; None: nothing."""
    usual = dict.fromkeys(beside(path, "health") for path in results)
    paths = [health] if health is not None else list(usual)
    rows = [row for path in paths if path.exists() for row in load_health(path).values()]
    if not rows:
        return None
    unfit = [Unfit(r.instance_id, r.instance_digest, r.detail) for r in rows if not r.sound]
    return SetCheck(len(rows), tuple(unfit))
