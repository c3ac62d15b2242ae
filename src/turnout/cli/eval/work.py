"""An evaluation on this machine: shown while it happens, reported at its end."""

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from turnout.cli.eval.live import Watch, watch_on
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

__all__ = ["Chosen", "Request", "work"]

_INTERRUPTED: Final = 130
_STOPPING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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
    instances = await _instances(request)
    results = Results(request.results)
    for ask in request.plan.asks:
        if ask.kind == "command":
            _say(f"{ask.name} runs its command on this machine, outside of any sandbox")
    with results.writing():
        signals = _Signals()
        interrupted = signals.stopped
        try:
            with signals.caught():
                await _run(request, instances, results, signals)
        except asyncio.CancelledError:
            if not signals.leaving:
                raise
            _say("What was under way goes on with the same command.")
        interrupted = signals.stopped
    return _report(request, instances, results, interrupted=interrupted)


async def _instances(request: Request) -> tuple[Instance, ...]:
    chosen = request.chosen
    found = await load_instances(chosen.tasks, repositories=chosen.repos)
    known = {instance.instance_id for instance in found}
    unknown = [name for name in chosen.only if name not in known]
    if unknown:
        raise UsageError(
            f"There is no instance {unknown[0]!r} in this file.",
            mend=f"The first are {', '.join(sorted(known)[:3])}.",
        )
    if chosen.only:
        found = tuple(each for each in found if each.instance_id in chosen.only)
    fit = tuple(each for each in found if request.mode == "visible" or each.spec != "needs-tests")
    if len(fit) < len(found):
        if chosen.only or not fit:
            check_mode(next(each for each in found if each not in fit), request.mode)
        left = plural(len(found) - len(fit), "instance")
        _say(f"{left} left out: nobody could solve them without seeing their tests")
    return fit[: chosen.limit]


async def _run(
    request: Request, instances: tuple[Instance, ...], results: Results, signals: "_Signals"
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
            signals.asks(evaluation.stop, watch)
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


class _Signals:
    """What Ctrl-C means: no more trials, and the second time no waiting either."""

    def __init__(self) -> None:
        self.stopped = False
        self.leaving = False
        self._stop: Callable[[str], None] | None = None
        self._watch: Watch | None = None
        self._main = asyncio.current_task()

    def asks(self, stop: Callable[[str], None], watch: Watch) -> None:
        """Tell what is to be stopped."""
        self._stop, self._watch = stop, watch

    @contextmanager
    def caught(self) -> Iterator[None]:
        """Catch the signals; one that whoever started us had us ignore stays ignored."""
        loop = asyncio.get_running_loop()
        caught = [each for each in _STOPPING if signal.getsignal(each) is not signal.SIG_IGN]
        for number in caught:
            loop.add_signal_handler(number, self._arrived)
        try:
            yield
        finally:
            for number in caught:
                loop.remove_signal_handler(number)

    def _arrived(self) -> None:
        if self.leaving:
            return
        if self.stopped or self._stop is None or self._watch is None:
            self.stopped = self.leaving = True
            if self._main is not None:
                self._main.cancel()
            return
        self.stopped = True
        self._stop("Interrupted.")
        self._watch.say("No more trials are begun; press Ctrl-C again to leave those under way.")


def _say(text: str) -> None:
    click.echo(safe(text), err=True)
