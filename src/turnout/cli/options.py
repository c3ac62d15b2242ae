"""Options that several commands share."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from turnout.core.json import JsonValue, ascii_json
from turnout.errors import ConfigError
from turnout.sandbox.repository import is_tracked
from turnout.settings import DriverName, Settings, find_config, load_settings

__all__ = [
    "config_option",
    "json_option",
    "read_settings",
    "repos_option",
    "sandbox_option",
    "say_json",
]

Command = TypeVar("Command", bound=Callable[..., Any])


def config_option(command: Command) -> Command:
    """Add `--config FILE`."""
    return click.option(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Configuration to read; by default turnout.toml of the current directory.",
    )(command)


def json_option(command: Command) -> Command:
    """Add `--json`."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON object and nothing else."
    )(command)


def repos_option(command: Command) -> Command:
    """Add `--repos DIR`."""
    return click.option(
        "--repos",
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        metavar="DIR",
        help="Folder of clones, for instances whose repo is OWNER/NAME.",
    )(command)


def sandbox_option(command: Command) -> Command:
    """Add `--sandbox DRIVER`."""
    return click.option(
        "--sandbox",
        type=click.Choice(get_args(DriverName)),
        help="What holds the tools, in place of what is set; none: nothing does.",
    )(command)


def read_settings(config: Path | None) -> Settings:
    """Return what was set; a file that came with a repository counts only where it is named.

    Such a file could send keys of this machine wherever it likes: `ConfigError` says how to trust
    it, before anything in it is looked at.
    """
    found = find_config(config=config)
    if found is not None and not found.named and asyncio.run(is_tracked(found.path)):
        raise ConfigError(
            f"{found.path} is part of a repository, which does not get to configure this machine.",
            mend=f"Read it first; to trust it, name it: --config {found.path.name}.",
        )
    return load_settings(config=config)


def say_json(value: JsonValue) -> None:
    """Print one JSON value on one line, in characters that every terminal and pipe takes."""
    click.echo(ascii_json(value))
