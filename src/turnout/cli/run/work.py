"""A run on this machine: shown while it happens, delivered at its end."""

import sys
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass

import click

from turnout.cli.options import say_json
from turnout.cli.progress import Silence, progress_on
from turnout.cli.report import Screen, closing_text, exit_code, judged_text, result_json
from turnout.cli.run.approve import approver_for
from turnout.cli.run.deliver import Destination
from turnout.cli.run.signals import stop_on_signals
from turnout.cli.terminal import safe
from turnout.core.events import Entry, VerdictGiven
from turnout.core.tasks import Task
from turnout.errors import TurnoutError
from turnout.runs.summary import RunResult, fold
from turnout.settings import Settings
from turnout.wiring.rooms import open_service

__all__ = ["Request", "work"]


@dataclass(frozen=True, slots=True)
class Request:
    """What the command line asks for."""

    task: Task
    settings: Settings
    destination: Destination
    as_json: bool
    screen: Screen
    approved: tuple[str, ...]
    """Rules whose calls need not be asked about."""


async def work(request: Request) -> int:
    """Run the task on this machine, tell of it, and return the exit code."""
    colour = request.settings.colour
    progress = Silence() if request.as_json else progress_on(sys.stderr, colour=colour)
    entries: list[Entry] = []
    result: RunResult | None = None
    judged = False
    try:
        approver = approver_for(
            progress,
            request.settings.agent.approvals,
            request.approved,
            quiet=request.as_json,
        )
        await request.destination.check()
        async with (
            stop_on_signals(progress) as signals,
            open_service(request.settings, progress.say) as service,
            aclosing(service.run(request.task, signals.stop, approver)) as items,
        ):
            async for item in items:
                if isinstance(item, RunResult):
                    result = item
                else:
                    signals.started = True
                    entries.append(item)
                    progress.show(item)
                    if isinstance(item.event, VerdictGiven) and not request.as_json:
                        with progress.aside():
                            judged = _show_judged(fold(entries), request.screen)
    except TurnoutError as error:
        if entries:
            record = f"On record: turnout runs show {fold(entries).run_id}"
            error.mend = f"{error.mend} {record}".strip()
        raise
    finally:
        progress.close()
    if result is None:
        raise RuntimeError("the run ended without a result")
    return await _present(request, result, entries, judged=judged)


def _show_judged(result: RunResult, screen: Screen) -> bool:
    """Print diff and verdict; False where nobody takes them, which must not end the run."""
    try:
        screen.show(f"{judged_text(result, screen)}\n")
    except OSError:
        return False
    return True


async def _present(
    request: Request, result: RunResult, entries: Sequence[Entry], *, judged: bool
) -> int:
    """Deliver a finished run and return the exit code; `judged`: diff and verdict are printed."""
    where = request.destination
    delivered = await where.deliver(result, entries)
    code = exit_code(result)
    if code == 0 and not delivered.done:
        code = 1
    if request.as_json:
        delivery = None if where.kind == "none" else delivered.to_json(where.kind)
        say_json(result_json(result, code, delivery))
        return code
    if not judged:
        request.screen.show(f"{judged_text(result, request.screen)}\n")
    request.screen.show(closing_text(result, request.screen))
    if delivered.text:
        click.echo(safe(delivered.text), err=not delivered.done)
    click.echo(f"\nThe whole record: turnout runs show {result.run_id} --full", err=True)
    return code
