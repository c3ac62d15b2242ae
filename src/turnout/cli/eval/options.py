"""Options that commands on a set of tasks have in common, and where they keep what they find."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from turnout.cli.options import config_option, json_option, read_settings, sandbox_option
from turnout.cli.terminal import safe
from turnout.settings import DriverName, Settings

__all__ = [
    "FiniteRange",
    "beside",
    "chosen_options",
    "ground_options",
    "jobs_option",
    "say",
    "settings_of",
    "tasks_argument",
    "tools_option",
]

Command = TypeVar("Command", bound=Callable[..., Any])

_KINDS = (".results", ".health", ".proven")


class FiniteRange(click.FloatRange):
    """A range of numbers, which what is no number or has no end is not in."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number; the error that a number out of range has."""
        found: float = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return found


def tasks_argument(command: Command) -> Command:
    """Add the argument TASKS, a file that is there."""
    kind = click.Path(path_type=Path, exists=True, dir_okay=False)
    return click.argument("tasks", type=kind)(command)


def chosen_options(verb: str) -> Callable[[Command], Command]:
    """Add `--only ID` and `--limit N`; `verb` says what is done with those instances."""
    only = click.option(
        "--only", multiple=True, metavar="ID", help=f"{verb} this instance; may be repeated."
    )
    kind = click.IntRange(min=1)
    limit = click.option("--limit", type=kind, metavar="N", help=f"{verb} the first N.")
    return lambda command: only(limit(command))


def jobs_option(what: str, name: str = "--concurrency") -> Callable[[Command], Command]:
    """Add the option that says how many of `what` are worked on at once, as `jobs`."""
    return click.option(
        name,
        "jobs",
        type=click.IntRange(1, 64),
        metavar="N",
        help=f"{what} at once; by default one for each core, as memory allows.",
    )


def tools_option(who: str) -> Callable[[Command], Command]:
    """Add `--surface NAME`; `who` gets the tools."""
    kind = click.Choice(["guide", "shell", "files"])
    return click.option("--surface", type=kind, help=f"Tools {who}.")


def ground_options(command: Command) -> Command:
    """Add `--sandbox`, `--json` and `--config`, which come last."""
    return sandbox_option(json_option(config_option(command)))


def settings_of(config: Path | None, sandbox: DriverName | None) -> Settings:
    """Return what was set, with the driver of sandboxes that was asked for."""
    settings = read_settings(config)
    return settings if sandbox is None else settings.with_driver(sandbox)


def beside(path: Path, kind: str) -> Path:
    """Return the file of another kind (`results`, `health`, `proven`) of the same tasks."""
    stem = path.name.removesuffix(".jsonl").removesuffix(".json")
    for each in _KINDS:
        stem = stem.removesuffix(each)
    return path.with_name(f"{stem}.{kind}.jsonl")


def say(text: str) -> None:
    """Say something on standard error, as it goes."""
    click.echo(safe(text), err=True)
