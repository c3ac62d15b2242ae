"""The `turnout` command: finds the command by name and turns any exception into an exit code.

Nothing but click is imported before a command was chosen.
"""

import importlib
import json
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Final, NamedTuple

import click

from turnout import __version__
from turnout.cli.streams import drop_unwritable, prepare_streams
from turnout.errors import (
    ConflictError,
    GatewayError,
    NotFoundError,
    StoreError,
    TurnoutError,
    UnfitError,
    UsageError,
)

__all__ = ["CommandsByName", "command", "main", "run"]

_SHOWN_NAME: Final = 200
_ENDED, _USAGE, _CAPPED, _UNFIT, _INTERRUPTED = 1, 2, 3, 4, 130


class _Command(NamedTuple):
    module: str
    """Holds the click command under the name `command`."""
    summary: str


_COMMANDS: Final[Mapping[str, _Command]] = {
    "run": _Command("turnout.cli.run.start", "Turn a task and a repository into a tested diff."),
    "review": _Command("turnout.cli.runs.review", "Have a change reviewed."),
    "runs": _Command("turnout.cli.runs", "List, show and order runs; print their diffs."),
    "init": _Command("turnout.cli.init", "Write a commented turnout.toml."),
    "doctor": _Command("turnout.cli.doctor", "Say what this machine can do and what it lacks."),
    "models": _Command("turnout.cli.models", "Fetch, serve and list the local models."),
    "prune": _Command("turnout.cli.prune", "Remove what was made for runs and is long unused."),
    "db": _Command("turnout.cli.db", "Look at the database, upgrade it, back it up."),
    "serve": _Command("turnout.cli.gateway.service", "Take in runs over HTTP and work on them."),
    "gateway": _Command("turnout.cli.gateway", "Serve the model gateway to any agent."),
    "connections": _Command("turnout.cli.connections", "List and check MCP connections."),
    "keys": _Command("turnout.cli.keys", "Create, list, change and revoke keys."),
    "policy": _Command("turnout.cli.policy", "Check, apply, compare and explain policies."),
    "usage": _Command("turnout.cli.usage", "Add up what model calls used and cost."),
    "tools": _Command("turnout.cli.notices.tools", "List the tools that agents declared."),
    "events": _Command("turnout.cli.notices.events", "List what happened at the gateway."),
    "audit": _Command("turnout.cli.notices.audit", "List who changed what."),
    "webhooks": _Command("turnout.cli.notices.webhooks", "Tell other services of events."),
    "eval": _Command("turnout.cli.eval", "Run evaluation tasks and grade their results."),
}


class CommandsByName(click.Group):
    """A group whose commands are imported only when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which a newcomer needs them."""
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None where there is none of that name."""
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        found = importlib.import_module(_COMMANDS[cmd_name].module).command
        return found if isinstance(found, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called; what looks like one is named where there is none."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = get_close_matches(args[0], _COMMANDS, n=1)
            if not near:
                raise
            said = f"{error.message} Did you mean `turnout {near[0]}`?"
            raise click.UsageError(said, ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, c.summary) for name, c in _COMMANDS.items()])


@click.group(
    cls=CommandsByName,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Turn a task and a repository into a tested diff.\n\n"
    "\b\nStart here:\n"
    "  turnout doctor\n"
    '  turnout run "test_leap_year fails; fix the cause" --repo .',
    epilog="\b\nExit codes:\n"
    "  0  done; for `run`: the verdict is resolved or no_regression,\n"
    "     or there are no tests and a diff was made\n"
    "  1  ended without that\n"
    "  2  wrong usage or configuration\n"
    "  3  a cap or the policy stopped it\n"
    "  4  the environment is not fit (sandbox, model, repository)\n"
    "  130  interrupted",
)
@click.version_option(__version__, prog_name="turnout")
def command() -> None:
    """Do nothing before the command that was chosen."""


def main() -> None:
    """Run the command line of this process."""
    prepare_streams()
    code = run(sys.argv[1:])
    # One more Ctrl-C must not take the exit code away.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(code)


def run(argv: Sequence[str], commands: click.Command = command) -> int:
    """Run one command and return its exit code; every failure is said in words."""
    try:
        return _run(argv, commands)
    except OSError:
        # Not even the failure can be said.
        return _ENDED
    finally:
        drop_unwritable()


def _run(argv: Sequence[str], commands: click.Command) -> int:
    as_json = "--json" in argv
    try:
        result = commands.main(list(argv), prog_name="turnout", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        return _wrong_usage(error, as_json=as_json)
    except TurnoutError as error:
        return _failed(error, as_json=as_json)
    except (KeyboardInterrupt, click.Abort):
        click.echo("Interrupted.", err=True)
        return _INTERRUPTED
    except BrokenPipeError:
        return _ENDED
    except OSError as error:
        return _refused_by_system(error, as_json=as_json)
    except Exception as error:
        return _crashed(error, as_json=as_json)
    return result if isinstance(result, int) else 0


def _wrong_usage(error: click.ClickException, *, as_json: bool) -> int:
    if as_json:
        _say_json("usage_error", error.format_message(), "", error.exit_code)
    else:
        error.show()
    return error.exit_code


def _failed(error: TurnoutError, *, as_json: bool) -> int:
    code = _code_of(error)
    if as_json:
        name = type(error).__name__.removesuffix("Error")
        kind = "".join(f"_{c.lower()}" if c.isupper() else c for c in name).strip("_")
        _say_json(kind, error.message, error.mend, code)
    else:
        click.echo(_safe(f"Error: {error.message}"), err=True)
        if error.mend:
            click.echo(_safe(error.mend), err=True)
    return code


def _safe(text: str) -> str:
    # `--help` appears without what tells characters apart.
    shown: str = importlib.import_module("turnout.cli.terminal").safe(text)
    return shown


def _code_of(error: TurnoutError) -> int:
    match error:
        case UsageError():
            return _USAGE
        case NotFoundError() | ConflictError():
            return _ENDED
        case UnfitError() | StoreError():
            return _UNFIT
        case GatewayError(status=402 | 403 | 429):
            return _CAPPED
        case GatewayError(status=401 | 502 | 503 | 504):
            return _UNFIT
        case _:
            return _ENDED


def _refused_by_system(error: OSError, *, as_json: bool) -> int:
    """Say what the system refused: no room, no right, no such name."""
    named = str(error.filename or "")
    shown = named if len(named) <= _SHOWN_NAME else f"{named[:_SHOWN_NAME]}…"
    said = f"{error.strerror or error}: {shown}" if named else f"{error.strerror or error}"
    unfit = UnfitError(f"The system refused: {said}.", mend=f"More in {_keep_traceback(error)}")
    return _failed(unfit, as_json=as_json)


def _crashed(error: Exception, *, as_json: bool) -> int:
    """Keep the traceback in a file and say in one line where it is."""
    message = f"Unexpected {type(error).__name__}: {error}"
    mend = f"This is a defect; the traceback is in {_keep_traceback(error)}"
    if as_json:
        _say_json("defect", message, mend, _ENDED)
    else:
        click.echo(_safe(message), err=True)
        click.echo(_safe(mend), err=True)
    return _ENDED


def _keep_traceback(error: Exception) -> Path:
    text = "".join(traceback.format_exception(error))
    try:
        folder = Path(importlib.import_module("turnout.settings").state_folder()) / "crashes"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(".txt", "crash-", folder)
    except (ImportError, OSError):
        handle, name = tempfile.mkstemp(".txt", "turnout-crash-")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    return Path(name)


def _say_json(kind: str, message: str, mend: str, code: int) -> None:
    error = {"kind": kind, "message": message, "mend": mend, "exit_code": code}
    click.echo(json.dumps({"error": error}))
