"""Options that several commands share."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from turnout.core.json import JsonValue

__all__ = ["config_option", "json_option", "say_json"]

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


def say_json(value: JsonValue) -> None:
    """Print one JSON value on one line."""
    click.echo(json.dumps(value, ensure_ascii=False))
