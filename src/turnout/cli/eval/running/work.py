"""An evaluation on this machine: shown while it happens, reported at its end."""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from turnout.cli.eval.options import beside, say
from turnout.cli.eval.running.live import watch_on
from turnout.cli.eval.running.signals import Signals
from turnout.cli.options import say_json
from turnout.cli.terminal import plural, safe
from turnout.errors import ConfigError, UsageError
from turnout.evals.conditions.model import Conditions, Limits, TaskSet
from turnout.evals.evidence.doubts import too_few
from turnout.evals.instances.load import load_instances
from turnout.evals.instances.model import Instance
from turnout.evals.instances.sources import check_sources
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
from turnout.wiring.evaluation.proving import Proven, proven
from turnout.wiring.evaluation.under import Planned, conditions_of

__all__ = ["Chosen", "Request", "Selected", "chosen_of", "work"]

_INTERRUPTED: Final = 130
_NEEDY: Final = "nobody could solve it without seeing its tests"


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which instances are run."""

    tasks: Path
    repos: Path | None
    only: tuple[str, ...]
    limit: int | None


@dataclass(frozen=True, slots=True)
class Selected:
    """The instances of a file that are run, and those that are left out."""

    run: tuple[Instance, ...]
    needy: tuple[Instance, ...] = ()
    """They tell too little for the mode."""


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
    selected = chosen_of(found, request.chosen, request.mode)
    if selected.needy:
        left = plural(len(selected.needy), "instance")
        say(f"{left} left out: nobody could solve them without seeing their tests")
    await check_sources(selected.run)
    results = Results(request.results)
    for ask in request.plan.asks:
        if ask.kind == "command":
            say(f"{ask.name} runs its command on this machine, outside of any sandbox")
    under: list[Conditions] = []
    with results.writing():
        signals = Signals()
        try:
            with signals.caught():
                under.append(await _run(request, selected, results, signals))
        except asyncio.CancelledError:
            if not signals.leaving:
                raise
            say("What was under way goes on with the same command.")
    conditions = under or results.conditions[-1:]
    return _report(request, selected, results, conditions, interrupted=signals.stopped)


def chosen_of(found: Sequence[Instance], chosen: Chosen, mode: Mode) -> Selected:
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
    kept = tuple(each for each in named if each not in needy)
    return Selected(kept[: chosen.limit], tuple(needy))


async def _run(
    request: Request, selected: Selected, results: Results, signals: Signals
) -> Conditions:
    """Run what is left, and return under what."""
    plan = request.plan
    kept_at = beside(request.results, "proven")
    ready = await proven(request.settings, selected.run, kept_at, say)
    if not ready.instances:
        raise ConfigError(
            "The facts of not one instance hold on this machine.",
            mend=f"{ready.left_out[0].instance.instance_id}: {ready.left_out[0].why}.",
        )
    async with open_evaluation(request.settings, plan, say) as opened:
        conditions = conditions_of(
            opened.under, _planned(request, selected, ready), opened.clock.now()
        )
        board = Board(opened.clock, plan.concurrency)
        planned = tuple(
            units_of(
                ready.instances,
                opened.arms,
                mode=request.mode,
                strict=request.strict,
                repeats=request.repeats,
            )
        )
        done = sum(results.done(unit) for unit, _, _ in planned)
        if done:
            say(f"{plural(done, 'result')} from before in {request.results}")
        if done < len(planned):
            results.note(conditions)
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
            say(evaluation.stopped_by)
    return conditions


def _planned(request: Request, selected: Selected, ready: Proven) -> Planned:
    """Return which trials the command is to see to, as they go on record."""
    # Where the first N are asked for, the set is those that can be run.
    needy = () if request.chosen.limit else selected.needy
    all_of_them = (*selected.run, *needy)
    hours = None if request.bounds.seconds is None else request.bounds.seconds / 3600
    tasks = TaskSet(
        request.chosen.tasks.name,
        tuple((each.instance_id, each.digest) for each in all_of_them),
        (
            *((each.instance.instance_id, each.why) for each in ready.left_out),
            *((each.instance_id, _NEEDY) for each in needy),
        ),
    )
    plan = request.plan
    limits = Limits(
        plan.limits.max_seconds, request.bounds.budget, hours, plan.concurrency, plan.grading
    )
    return Planned(tasks, request.mode, request.strict, request.repeats, plan.surface, limits)


def _report(
    request: Request,
    selected: Selected,
    results: Results,
    conditions: Sequence[Conditions],
    *,
    interrupted: bool,
) -> int:
    trials = [each for each in results.of(selected.run) if each.mode == request.mode]
    report = summarise(trials, instances=len(selected.run), conditions=conditions)
    wanted = len(selected.run) * len(request.plan.asks) * request.repeats
    enough = sum(trial.graded for trial in trials) >= wanted
    if request.as_json:
        say_json(report_json(report))
    else:
        click.echo(safe(report_text(report)))
        tasks = {trial.instance_id for trial in trials if trial.graded}
        if enough and not interrupted and not too_few(len(tasks)):
            say(f"Let routing go by this: turnout eval apply {request.results}")
    if interrupted:
        return _INTERRUPTED
    return 0 if enough else 1
