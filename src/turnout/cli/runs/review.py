"""`turnout review`: a change that is there already, read by the review agent."""

import asyncio
import sys
from pathlib import Path
from typing import BinaryIO, Final

import click

from turnout.cli.options import config_option, json_option, read_settings, sandbox_option
from turnout.cli.report import screen_of
from turnout.cli.run.deliver import Destination
from turnout.cli.run.start import repository_of
from turnout.cli.run.work import Request, work
from turnout.cli.runs.remote import order_run, server_option
from turnout.core.json import JsonObject
from turnout.core.tasks import ReviewAsk, Task
from turnout.errors import UsageError
from turnout.runs.intake import LARGEST_DIFF, NOTHING_SAID
from turnout.settings import DriverName, service_address

__all__ = ["command"]

_HERE: Final = "."


@click.command(
    "review",
    epilog="\b\nExamples:\n"
    "  turnout review main..verbose-flag --repo .\n"
    "  git diff | turnout review -\n"
    '  turnout review change.patch --base v2.1 --task "add a --verbose flag" --json\n'
    "\b\nExit codes:\n"
    "  0  the review approves the change, or has remarks that block nothing\n"
    "  1  the review blocks the change, or came to no decision\n"
    "  2  wrong usage or configuration\n"
    "  3  a cap or the policy stopped it\n"
    "  4  the environment is not fit (sandbox, model, repository)\n"
    "  130  interrupted",
)
@click.argument("change", metavar="DIFF")
@click.option(
    "--repo",
    default=_HERE,
    metavar="PATH|URL|NAME",
    help="Git repository; default: here. At a service: its name there.",
)
@click.option("--base", metavar="REV", help="Commit that a diff lies on; default: HEAD.")
@click.option("--task", metavar="TEXT", help="What the change is for.")
@click.option("--max-steps", type=click.IntRange(min=1), metavar="N", help="Steps at most.")
@click.option("--model", metavar="ID", help="Pin every model call to one model.")
@click.option(
    "--once", metavar="KEY", help="At a service: sent again with the same key, it is the same run."
)
@server_option
@sandbox_option
@json_option
@config_option
def command(
    *,
    change: str,
    repo: str,
    base: str | None,
    task: str | None,
    max_steps: int | None,
    model: str | None,
    once: str | None,
    server: str | None,
    sandbox: DriverName | None,
    as_json: bool,
    config: Path | None,
) -> int:
    """Have a change reviewed by an agent that only reads.

    DIFF is a file, `-` for standard input, or a range of commits: BASE..HEAD, of which what HEAD
    changes since it has left BASE is read. The repository stays as it is. With --server or
    TURNOUT_SERVER the review is a run of that service, on its models and in its sandbox.
    """
    asked, base = _asked(change, base)
    if service_address(server) is not None:
        _check_theirs(model, sandbox)
        body = _body(asked, repo, base, task, max_steps)
        return order_run(server, body, once, and_follow=True, as_json=as_json)
    settings = read_settings(config).with_effort(None, "block")
    if model is not None:
        settings = settings.with_model(model)
    if sandbox is not None:
        settings = settings.with_driver(sandbox)
    if max_steps is not None:
        settings = settings.with_max_steps(max_steps)
    wanted = Task(task or NOTHING_SAID, repository_of(repo), base, "review", review=asked)
    screen = screen_of(sys.stdout, colour=settings.colour)
    request = Request(wanted, settings, Destination("none"), as_json, screen, ())
    try:
        return asyncio.run(work(request))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _asked(change: str, base: str | None) -> tuple[ReviewAsk, str]:
    """Return what is to be reviewed, and the revision that it is compared with or lies on."""
    if change == "-":
        return ReviewAsk(_read(sys.stdin.buffer)), base or "HEAD"
    path = Path(change)
    if path.is_file():
        with path.open("rb") as file:
            return ReviewAsk(_read(file)), base or "HEAD"
    start, dots, head = change.partition("..")
    if not dots:
        raise UsageError(
            f"{change!r} is no file, and no range of commits.",
            mend="Write BASE..HEAD, or `-` to read a diff from standard input.",
        )
    if base is not None:
        raise UsageError(
            "A range of commits has its own base.", mend=f"Leave --base out: {change}."
        )
    return ReviewAsk(head=head.removeprefix(".") or "HEAD"), start or "HEAD"


def _check_theirs(model: str | None, sandbox: DriverName | None) -> None:
    """Refuse what is the service's own to choose."""
    for option, value in (("--model", model), ("--sandbox", sandbox)):
        if value is not None:
            raise UsageError(
                f"A service chooses for itself what {option} says.",
                mend=f"Leave {option} out, or TURNOUT_SERVER and --server to review it here.",
            )


def _read(file: BinaryIO) -> bytes:
    return file.read(LARGEST_DIFF + 1)


def _body(
    asked: ReviewAsk, repo: str, base: str, task: str | None, max_steps: int | None
) -> JsonObject:
    """Return the order that a service takes."""
    if repo == _HERE:
        raise UsageError(
            "No repository is named.",
            mend="Name one of the service's: --repo NAME. To review it on this machine, leave "
            "--server and TURNOUT_SERVER out.",
        )
    said: JsonObject = {} if task is None else {"task": task}
    limits: JsonObject = {} if max_steps is None else {"limits": {"max_steps": max_steps}}
    body: JsonObject = {"kind": "review", "repo": repo, "base": base, **said, **limits}
    try:
        change = {"head": asked.head} if asked.head else {"diff": asked.diff.decode()}
    except UnicodeDecodeError as error:
        raise UsageError(
            "The diff is not all UTF-8, which no service takes.",
            mend="Have a range of commits reviewed, or review it on this machine.",
        ) from error
    return {**body, **change}
