"""The command itself: what it takes, what it shows, how it ends."""

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Final, Literal

import click

from turnout.cli.options import config_option, json_option, read_settings, sandbox_option
from turnout.cli.report import screen_of
from turnout.cli.run.deliver import destination
from turnout.cli.run.work import Request, work
from turnout.core.tasks import SurfaceName, Task
from turnout.errors import UsageError
from turnout.settings import DriverName

__all__ = ["command", "repository_of"]

_REMOTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|[^/\s:]+@[^/\s:]+:")
"""A URL, or the short form of an ssh address."""

_LONGEST_TASK: Final = 256 * 1024
"""Bytes."""


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
@click.option(
    "--base",
    default="HEAD",
    metavar="REV",
    help="Branch, tag or commit to start from; default: HEAD.",
)
@click.option(
    "--surface",
    type=click.Choice(["guide", "shell", "files"]),
    help="Tools the model gets; default: those of `agent.surface`.",
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
        repository=repository_of(repo),
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
        return asyncio.run(work(Request(wanted, settings, where, as_json, screen, approve)))
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


def repository_of(given: str) -> str:
    """Return the URL, or the absolute path, of a repository as it was given."""
    if _REMOTE.match(given) and not Path(given).exists():
        return given
    return str(Path(given).absolute())
