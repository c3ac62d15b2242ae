"""The command itself: what it takes, what it shows, how it ends."""

import asyncio
import os
import re
import sys
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import click

from turnout.cli.options import (
    config_option,
    json_option,
    read_settings,
    sandbox_option,
    say_json,
)
from turnout.cli.progress import Silence, progress_on
from turnout.cli.report import (
    Screen,
    closing_text,
    exit_code,
    judged_text,
    result_json,
    screen_of,
)
from turnout.cli.run.approve import approver_for
from turnout.cli.run.deliver import Destination, destination
from turnout.cli.run.signals import stop_on_signals
from turnout.cli.terminal import safe
from turnout.core.events import Entry, VerdictGiven
from turnout.core.tasks import SurfaceName, Task
from turnout.errors import TurnoutError, UsageError
from turnout.runs.summary import RunResult, fold
from turnout.settings import DriverName, Settings
from turnout.wiring.rooms import open_service

__all__ = ["command"]

_REMOTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|[^/\s:]+@[^/\s:]+:")
"""A URL, or the short form of an ssh address."""

_LONGEST_TASK: Final = 256 * 1024
"""Bytes."""


@dataclass(frozen=True, slots=True)
class _Request:
    """What the command line asks for."""

    task: Task
    settings: Settings
    destination: Destination
    as_json: bool
    screen: Screen
    approved: tuple[str, ...]
    """Rules whose calls need not be asked about."""


@click.command(
    "run",
    epilog="\b\nExamples:\n"
    '  turnout run "tests/test_dates.py fails on leap years; fix the code" --repo .\n'
    '  turnout run "add a --verbose flag" --repo . --branch verbose-flag\n'
    '  turnout run "fix issue 12" --repo https://host/team/project.git --base v2.1 --json\n'
    "\b\nExit codes:\n"
    "  0  verdict resolved or no_regression, or no tests are there and a diff was made\n"
    "  1  the run ended without that, or the diff could not be delivered\n"
    "  2  wrong usage or configuration\n"
    "  3  a cap or the policy stopped the run\n"
    "  4  the environment is not fit (sandbox, model, repository)\n"
    "  130  interrupted; the diff so far is on record",
)
@click.argument("task", metavar="TASK")
@click.option("--repo", default=".", metavar="PATH|URL", help="Git repository; default: here.")
@click.option("--base", default="HEAD", metavar="REV", help="Revision to start from.")
@click.option(
    "--surface", type=click.Choice(["guide", "shell", "files"]), help="Tools the model gets."
)
@click.option("--test-command", metavar="CMD", help="Shell command that runs the tests.")
@click.option(
    "--setup",
    metavar="CMD",
    help="Shell command that sets the workspace up; it reaches package mirrors alone.",
)
@click.option(
    "--apply",
    "apply_",
    is_flag=True,
    help="Apply the diff to the working tree, unless the tests speak against it.",
)
@click.option(
    "--branch", metavar="NAME", help="Commit the diff to a new branch, whatever the verdict."
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write patch.diff, explanation.md, record.jsonl and summary.json.",
)
@click.option("--max-steps", type=click.IntRange(min=1), metavar="N", help="Act steps at most.")
@click.option(
    "--attempts",
    type=click.IntRange(1, 20),
    metavar="N",
    help="How often to try, each time anew, until the tests pass.",
)
@click.option(
    "--review",
    type=click.Choice(["off", "annotate", "block"]),
    help="What a review agent may do to the change.",
)
@click.option(
    "--approve",
    multiple=True,
    metavar="RULE",
    help="Allow, unasked, what this rule of `approvals` asks about.",
)
@click.option("--model", metavar="ID", help="Pin every model call to one model.")
@sandbox_option
@json_option
@config_option
def command(
    *,
    task: str,
    repo: str,
    base: str,
    surface: SurfaceName | None,
    test_command: str | None,
    setup: str | None,
    apply_: bool,
    branch: str | None,
    output: Path | None,
    max_steps: int | None,
    attempts: int | None,
    review: Literal["off", "annotate", "block"] | None,
    approve: tuple[str, ...],
    model: str | None,
    sandbox: DriverName | None,
    as_json: bool,
    config: Path | None,
) -> int:
    """Turn TASK into a tested diff of a repository; `-` reads the task from standard input.

    The work is done in a sandbox on a copy of the base commit. Nothing of yours changes unless
    you ask for --apply or --branch. Press Ctrl-C once to stop after the current step, twice to
    stop at once; the work so far stays on record either way.
    """
    settings = read_settings(config)
    if model is not None:
        settings = settings.with_model(model)
    if sandbox is not None:
        settings = settings.with_driver(sandbox)
    if max_steps is not None:
        settings = settings.with_max_steps(max_steps)
    settings = settings.with_effort(attempts, review)
    wanted = Task(
        prompt=_prompt(task),
        repository=_repository(repo),
        base=base,
        surface=surface or settings.surface,
        test_command=test_command or settings.test_command,
        requirements=settings.requirements,
        setup=setup or settings.setup,
    )
    where = destination(
        wanted.repository, settings.host_environment, apply=apply_, branch=branch, output=output
    )
    try:
        screen = screen_of(sys.stdout, colour=settings.colour)
        return asyncio.run(_run(_Request(wanted, settings, where, as_json, screen, approve)))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _prompt(given: str) -> str:
    """Return the task as text, whatever bytes it was given as."""
    data = os.fsencode(given) if given != "-" else sys.stdin.buffer.read(_LONGEST_TASK + 1)
    if len(data) > _LONGEST_TASK:
        raise UsageError(
            f"The task is longer than {_LONGEST_TASK // 1024} KiB.",
            mend="Say what is to be done; what the agent should read goes into the repository.",
        )
    return data.decode(errors="replace")


def _repository(given: str) -> str:
    if _REMOTE.match(given) and not Path(given).exists():
        return given
    return str(Path(given).absolute())


async def _run(request: _Request) -> int:
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
    request: _Request, result: RunResult, entries: Sequence[Entry], *, judged: bool
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
