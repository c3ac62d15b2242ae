"""`turnout eval run`: arms worked on the same instances, whose hidden tests grade the results."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from turnout.cli.eval.options import (
    FiniteRange,
    chosen_options,
    ground_options,
    settings_of,
    tasks_argument,
    tools_option,
)
from turnout.cli.eval.running.work import Chosen, Request, work
from turnout.cli.keys.values import SPEND
from turnout.cli.options import repos_option
from turnout.cli.policy.files import read_file
from turnout.core.money import Micros
from turnout.core.policies import Policy
from turnout.core.service.orders import OrderLimits
from turnout.core.tasks import SurfaceName
from turnout.evals.trials.arms import ArmAsk, read_arms
from turnout.evals.trials.evaluation import Bounds
from turnout.evals.trials.model import Mode
from turnout.settings import DriverName
from turnout.wiring.evaluation.local import usual_concurrency
from turnout.wiring.evaluation.opening import Plan, grading_slots

__all__ = ["run"]


@click.command(
    "run",
    epilog="\b\nExamples:\n"
    "  turnout eval run tasks.jsonl --limit 5\n"
    "  turnout eval run tasks.jsonl --arm auto --arm model:big --arm model:small\n"
    "  turnout eval run tasks.jsonl --arm auto --arm policy:draft.toml --repeats 3\n"
    "  turnout eval run tasks.jsonl --budget 5 --max-hours 8 --concurrency 4\n"
    "  turnout eval run tasks.jsonl --arm 'own=command:my-agent \"$TURNOUT_TASK\"'\n"
    "\b\nExit codes:\n"
    "  0  every trial was graded, whatever its grade\n"
    "  1  some could not be graded, or were not run\n"
    "  2  wrong usage, or a line of TASKS that is wrong\n"
    "  4  the environment is not fit (sandbox, model)\n"
    "  130  interrupted; the same command goes on",
)
@tasks_argument
@click.option(
    "--arm",
    "arms",
    multiple=True,
    metavar="ARM",
    help="What is compared, may be repeated: auto (the default), model:ID, policy:NAME, "
    "policy:NAME@REVISION, policy:FILE.toml, or NAME=command:COMMAND, which runs on this machine "
    "in a checkout of its own, with the task in $TURNOUT_TASK.",
)
@click.option(
    "--mode",
    type=click.Choice(["hidden", "visible"]),
    default="hidden",
    show_default=True,
    help="Whether the tests that grade are in the workspace from the start.",
)
@chosen_options("Run")
@click.option(
    "--repeats",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    metavar="N",
    help="Try each instance N times with each arm.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 256),
    metavar="N",
    help="Runs that are worked on at once; grading has slots of its own. By default 2, or 1 where "
    "this machine serves the models itself: a run then waits for no other's answer.",
)
@click.option(
    "--seconds",
    type=FiniteRange(min=1),
    metavar="S",
    help="Wall time of one run, after which it ends with `capped` and is graded as it is.",
)
@click.option(
    "--budget",
    type=SPEND,
    help="Begin no more trials once all of them have cost this much.",
)
@click.option(
    "--max-hours",
    type=FiniteRange(min=0, min_open=True),
    metavar="H",
    help="Begin no more trials after so long.",
)
@click.option(
    "--strict/--lenient",
    default=None,
    help="Whether any change to existing tests or to what controls them fails a trial, instead of "
    "being left out; by default in visible mode.",
)
@click.option(
    "--retry",
    type=click.Choice(["errors", "none"]),
    default="errors",
    show_default=True,
    help="What of earlier results is run again.",
)
@repos_option
@click.option(
    "--results",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where results are kept; default: TASKS with the ending .results.jsonl, here.",
)
@tools_option("the model gets")
@ground_options
def run(
    *,
    tasks: Path,
    arms: tuple[str, ...],
    mode: Mode,
    only: tuple[str, ...],
    limit: int | None,
    repeats: int,
    concurrency: int | None,
    seconds: float | None,
    budget: Micros | str | None,
    max_hours: float | None,
    strict: bool | None,
    retry: str,
    repos: Path | None,
    results: Path | None,
    surface: SurfaceName | None,
    sandbox: DriverName | None,
    as_json: bool,
    config: Path | None,
) -> int:
    """Run the instances of TASKS, a file of JSON lines, and grade each by its hidden tests.

    The same command again goes on where it stopped: what is in the results file is not run
    again, except what could not be graded, and a run that was under way is taken up where it was.
    Rows that are facts of a fix alone are proven first, once. Ctrl-C once begins no more trials;
    twice leaves those under way for the next time.
    """
    settings = settings_of(config, sandbox)
    asks = read_arms(arms)
    most = None if isinstance(budget, str) else budget
    plan = Plan(
        asks,
        _drafts(asks, config),
        surface or settings.surface,
        OrderLimits(max_seconds=seconds),
        concurrency or usual_concurrency(settings),
        grading_slots(),
        counted=most is not None,
    )
    request = Request(
        settings=settings,
        plan=plan,
        chosen=Chosen(tasks, repos, only, limit),
        results=results or Path(f"{tasks.stem}.results.jsonl"),
        mode=mode,
        strict=mode == "visible" if strict is None else strict,
        repeats=repeats,
        again=retry == "errors",
        bounds=Bounds(
            None if isinstance(budget, str) else budget,
            None if max_hours is None else max_hours * 3600,
        ),
        as_json=as_json,
    )
    return asyncio.run(work(request))


def _drafts(asks: Sequence[ArmAsk], config: Path | None) -> Mapping[str, Policy]:
    """Return the policies of files that arms name, by the text that names them."""
    files = [ask.value for ask in asks if ask.kind == "policy" and ask.value.endswith(".toml")]
    return {text: read_file(Path(text), config).named(None) for text in files}
