"""`turnout eval publish`: results where the console of this machine shows them."""

import os
import re
from pathlib import Path
from typing import Final

import click

from turnout.cli.eval.options import say
from turnout.cli.options import config_option, json_option, read_settings, say_json
from turnout.cli.terminal import safe
from turnout.errors import ConflictError, UsageError
from turnout.evals.report.read import read_kept
from turnout.wiring.state import results_folder_of

__all__ = ["publish"]

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,193}")


@click.command(
    "publish",
    epilog="\b\nExamples:\n"
    "  turnout eval publish tasks.results.jsonl\n"
    "  turnout eval publish tasks.results.jsonl --name march --replace\n"
    "\b\nExit codes:\n"
    "  0  it is there, or was so already\n"
    "  2  wrong usage, or a file that holds no results\n"
    "  4  other results have that name",
)
@click.argument("results", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--name", metavar="NAME", help="What the console calls it; default: as the file.")
@click.option("--replace", is_flag=True, help="Put it in the place of results of that name.")
@json_option
@config_option
def publish(
    *, results: Path, name: str | None, replace: bool, as_json: bool, config: Path | None
) -> int:
    """Copy RESULTS to where the console looks for results to report and to apply.

    RESULTS stay where they are; what is added to them later is shown once they are published again.
    """
    folder = results_folder_of(read_settings(config))
    target = folder / f"{_checked(name or results.name.removesuffix('.jsonl'))}.jsonl"
    if not read_kept(results).trials:
        raise UsageError(f"{results} holds no result yet.")
    written = _put(results, target, replace=replace)
    if as_json:
        say_json({"file": str(target), "name": target.name, "changed": written})
    else:
        click.echo(safe(str(target)))
        say("Shown in the console under Evaluations." if written else "It was there already.")
    return 0


def _checked(name: str) -> str:
    stem = name.removesuffix(".jsonl")
    if not _NAME.fullmatch(stem):
        raise UsageError(
            f"{name[:100]!r} is no name for results.",
            mend="Give one of letters, digits, dots, dashes and underscores: --name NAME.",
        )
    return stem


def _put(results: Path, target: Path, *, replace: bool) -> bool:
    """Copy a file, so that it is whole or not there; False where it is there as it is."""
    made = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        data = results.read_bytes()
        if target.exists() and target.read_bytes() == data:
            return False
        if target.exists() and not replace:
            raise ConflictError(
                f"There are other results of the name {target.name}.",
                mend="Take another one with --name, or put these in their place with --replace.",
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        made.write_bytes(data)
        made.replace(target)
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be read or written: {error.strerror}.") from None
    finally:
        made.unlink(missing_ok=True)
    return True
