"""`turnout eval`: runs on instances whose hidden tests then grade the result."""

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from turnout.cli.options import (
    config_option,
    json_option,
    read_settings,
    sandbox_option,
    say_json,
)
from turnout.cli.progress import Progress, Silence, progress_on
from turnout.cli.terminal import plural, safe
from turnout.core.clock import SystemClock
from turnout.core.tasks import SurfaceName
from turnout.errors import UsageError
from turnout.evals.grade import Grader
from turnout.evals.instances import Instance, load_instances
from turnout.evals.quality import qualities
from turnout.evals.report import report_json, report_text, summarise
from turnout.evals.results import Results
from turnout.evals.trial import Trial, Trials
from turnout.settings import DriverName, Settings
from turnout.wiring.evidence import keep_qualities
from turnout.wiring.rooms import open_service
from turnout.wiring.sandboxes import open_sandboxes

__all__ = ["command"]


@dataclass(frozen=True, slots=True)
class _Request:
    """What the command line asks for."""

    settings: Settings
    instances: tuple[Instance, ...]
    source: str
    """What evidence says that it rests on."""
    results: Results
    surface: SurfaceName
    progress: Progress


@click.group("eval")
def command() -> None:
    """Run evaluation tasks and grade their results."""


@command.command(
    "run",
    epilog="\b\nExamples:\n"
    "  turnout eval run tasks.jsonl --limit 5\n"
    "  turnout eval run tasks.jsonl --only astropy__astropy-12907 --repos ~/clones\n"
    "\b\nExit codes:\n"
    "  0  every instance was graded, whatever its grade\n"
    "  1  some could not be graded\n"
    "  2  wrong usage, or a line of TASKS that is wrong\n"
    "  4  the environment is not fit (sandbox, model)",
)
@click.argument("tasks", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--only", multiple=True, metavar="ID", help="Run this instance; may be repeated.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Run the first N.")
@click.option(
    "--repos",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="Folder of clones, for instances whose repo is OWNER/NAME.",
)
@click.option(
    "--results",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where results are kept; default: TASKS with the ending .results.jsonl, here.",
)
@click.option(
    "--surface", type=click.Choice(["guide", "shell", "files"]), help="Tools the model gets."
)
@click.option("--model", metavar="ID", help="Pin every model call to one model.")
@click.option("--verbose", is_flag=True, help="Show each run as it happens.")
@sandbox_option
@json_option
@config_option
def _evaluate(
    *,
    tasks: Path,
    only: Sequence[str],
    limit: int | None,
    repos: Path | None,
    results: Path | None,
    surface: SurfaceName | None,
    model: str | None,
    verbose: bool,
    sandbox: DriverName | None,
    as_json: bool,
    config: Path | None,
) -> int:
    """Run the instances of TASKS, a file of JSON lines, and grade each by its hidden tests.

    The same command again goes on where it stopped: what is in the results file is not run
    again, except what could not be graded. What a model solved where it worked alone is kept as
    its quality at coding, which `optimize: quality` then goes by.
    """
    settings = read_settings(config)
    if model is not None:
        settings = settings.with_model(model)
    if sandbox is not None:
        settings = settings.with_driver(sandbox)
    instances = _chosen(load_instances(tasks, repositories=repos), only)[:limit]
    request = _Request(
        settings,
        instances,
        f"turnout eval run {tasks.name}",
        Results(results or Path(f"{tasks.stem}.results.jsonl")),
        surface or settings.surface,
        progress_on(sys.stderr, colour=settings.colour) if verbose else Silence(),
    )
    try:
        asyncio.run(_run(request))
    finally:
        request.progress.close()
    report = summarise(request.results.of(instances), len(instances))
    if as_json:
        say_json(report_json(report))
    else:
        click.echo(safe(report_text(report)))
    return 0 if report.graded == len(instances) else 1


def _chosen(instances: tuple[Instance, ...], only: Sequence[str]) -> tuple[Instance, ...]:
    known = {instance.instance_id for instance in instances}
    unknown = [name for name in only if name not in known]
    if unknown:
        raise UsageError(
            f"There is no instance {unknown[0]!r} in this file.",
            mend=f"The first are {', '.join(sorted(known)[:3])}.",
        )
    return tuple(each for each in instances if not only or each.instance_id in only)


async def _run(request: _Request) -> None:
    todo = [each for each in request.instances if request.results.done(each) is None]
    done = len(request.instances) - len(todo)
    if done:
        _say(f"{plural(done, 'result')} from before in the results file")
    if not todo:
        return
    settings = request.settings
    with tempfile.TemporaryDirectory(prefix="turnout-eval-") as folder:
        async with open_sandboxes(settings) as driver, open_service(settings, _say) as service:
            grader = Grader(
                driver,
                settings.limits,
                test_timeout=settings.agent.own_test_timeout,
                test_paths=settings.test_paths,
            )
            trials = Trials(
                service, grader, Path(folder), surface=request.surface, setup=settings.setup
            )
            for number, instance in enumerate(todo, start=done + 1):
                place = f"[{number}/{len(request.instances)}] {instance.instance_id}"
                _say(f"{place} …")
                trial = await trials.run(instance, request.progress.show)
                request.results.add(trial)
                _say(f"{place}: {_line(trial)}")
    await _keep(request)


async def _keep(request: _Request) -> None:
    """Keep what the trials show of models, for routing to go by."""
    trials = request.results.of(request.instances)
    shown = tuple(qualities(trials, request.source, SystemClock().now()))
    await keep_qualities(request.settings, shown)
    for each in shown:
        _say(f"{each.subject} solved {each.solved} of {each.tried}; routing goes by that now")


def _line(trial: Trial) -> str:
    ended = f" ({trial.outcome}, {plural(trial.steps, 'step')}, {trial.seconds:.0f} s)"
    detail = "" if trial.grade == "resolved" else f": {trial.detail}"
    return f"{trial.grade}{ended if trial.outcome else ''}{detail}"


def _say(text: str) -> None:
    click.echo(safe(text), err=True)
