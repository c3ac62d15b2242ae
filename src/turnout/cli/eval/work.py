"""An evaluation on this machine: shown while it happens, reported at its end."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from turnout.cli.eval.live import watch_on
from turnout.cli.eval.signals import Signals
from turnout.cli.options import say_json
from turnout.cli.terminal import plural, safe
from turnout.errors import UsageError
from turnout.evals.instances.load import load_instances
from turnout.evals.instances.model import Instance
from turnout.evals.report.figures import summarise
from turnout.evals.report.json import report_json
from turnout.evals.report.text import report_text
from turnout.evals.trials.board import Board
from turnout.evals.trials.evaluation import Bounds, Evaluation
from turnout.evals.trials.model import Mode
from turnout.evals.trials.places import check_mode
from turnout.evals.trials.schedule import units_of
from turnout.evals.trials.store import Results
from turnout.settings import Settings
from turnout.wiring.evaluation.opening import Plan, open_evaluation

__all__ = ["Chosen", "Request", "chosen_of", "work"]

_INTERRUPTED: Final = 130


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which instances are run."""

    tasks: Path
    repos: Path | None
    only: tuple[str, ...]
    limit: int | None


@dataclass(frozen=True, slots=True)
class Request:
    """What the command line asks for."""

    settings: Settings
    plan: Plan
    chosen: Chosen
    results: Path
    mode: Mode
    strict: bool
    repeats: int
    again: bool
    """Whether what could not be graded is run again."""
    bounds: Bounds
    as_json: bool


async def work(request: Request) -> int:
    """Run what is left of the evaluation, report all of it, and return the exit code."""
    found = await load_instances(request.chosen.tasks, repositories=request.chosen.repos)
    instances = chosen_of(found, request.chosen, request.mode, _say)
    results = Results(request.results)
    for ask in request.plan.asks:
        if ask.kind == "command":
            _say(f"{ask.name} runs its command on this machine, outside of any sandbox")
    with results.writing():
        signals = Signals()
        try:
            with signals.caught():
                await _run(request, instances, results, signals)
        except asyncio.CancelledError:
            if not signals.leaving:
                raise
            _say("What was under way goes on with the same command.")
    return _report(request, instances, results, interrupted=signals.stopped)


def chosen_of(
    found: Sequence[Instance], chosen: Chosen, mode: Mode, say: Callable[[str], None]
) -> tuple[Instance, ...]:
    """Return the instances that are run; `UsageError` where one that is named cannot be."""
    known = {instance.instance_id for instance in found}
    unknown = [name for name in chosen.only if name not in known]
    if unknown:
        raise UsageError(
            f"There is no instance {unknown[0]!r} in this file.",
            mend=f"The first are {', '.join(sorted(known)[:3])}.",
        )
    named = [each for each in found if not chosen.only or each.instance_id in chosen.only]
    needy = [each for each in named if mode == "hidden" and each.spec == "needs-tests"]
    if needy and (chosen.only or len(needy) == len(named)):
        check_mode(needy[0], mode)
    if needy:
        left = plural(len(needy), "instance")
        say(f"{left} left out: nobody could solve them without seeing their tests")
    return tuple(each for each in named if each not in needy)[: chosen.limit]


async def _run(
    request: Request, instances: tuple[Instance, ...], results: Results, signals: Signals
) -> None:
    plan = request.plan
    async with open_evaluation(request.settings, plan, _say) as opened:
        board = Board(opened.clock, plan.concurrency)
        planned = tuple(
            units_of(
                instances,
                opened.arms,
                mode=request.mode,
                strict=request.strict,
                repeats=request.repeats,
            )
        )
        done = sum(results.done(unit) for unit, _, _ in planned)
        if done:
            _say(f"{plural(done, 'result')} from before in {request.results}")
        colour = request.settings.colour
        watch = watch_on(sys.stderr, board, opened.clock, colour=colour)
        try:
            evaluation = Evaluation(
                results,
                opened.trials,
                board,
                opened.clock,
                bounds=request.bounds,
                on_end=watch.ended,
            )
            signals.asks(evaluation.stop, watch.say)
            await evaluation.go(planned, slots=plan.concurrency, again=request.again)
        finally:
            watch.close()
        if board.done < board.total and evaluation.stopped_by:
            _say(evaluation.stopped_by)


def _report(
    request: Request, instances: tuple[Instance, ...], results: Results, *, interrupted: bool
) -> int:
    trials = [each for each in results.of(instances) if each.mode == request.mode]
    report = summarise(trials, instances=len(instances))
    if request.as_json:
        say_json(report_json(report))
    else:
        click.echo(safe(report_text(report)))
        if any(trial.graded for trial in trials):
            _say(f"Let routing go by this: turnout eval apply {request.results}")
    if interrupted:
        return _INTERRUPTED
    wanted = len(instances) * len(request.plan.asks) * request.repeats
    return 0 if sum(trial.graded for trial in trials) >= wanted else 1


def _say(text: str) -> None:
    click.echo(safe(text), err=True)
