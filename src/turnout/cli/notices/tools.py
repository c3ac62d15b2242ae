"""`turnout tools`: which tools agents declared."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from turnout.cli.options import config_option, json_option, read_settings, say_json
from turnout.cli.terminal import safe
from turnout.core.govern.toolwatch import SeenTool
from turnout.settings import Settings
from turnout.wiring.usage import open_usage

__all__ = ["command"]

_LONGEST = 60


@click.command(
    "tools",
    epilog="\b\nExamples:\n  turnout tools\n  turnout tools --project web --json",
)
@click.option("--project", metavar="NAME", help="Tools of one project only.")
@click.option("--key", metavar="NAME", help="Tools of one key only.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True)
@json_option
@config_option
def command(
    *, project: str | None, key: str | None, limit: int, as_json: bool, config: Path | None
) -> int:
    """List every tool that requests declared, by key, with when it was seen first and last.

    A tool that is new comes first. `calls` are the requests in whose answer a model called it.
    """
    found = asyncio.run(_tools(read_settings(config), project, key, limit))
    if as_json:
        say_json({"tools": [_object(one) for one in found]})
    elif not found:
        click.echo("No request has declared a tool yet.")
    else:
        click.echo(_text(found))
    return 0


async def _tools(
    settings: Settings, project: str | None, key: str | None, limit: int
) -> Sequence[SeenTool]:
    async with open_usage(settings) as office:
        return await office.tools.inventory(limit=limit, project=project, key=key)


def _object(seen: SeenTool) -> dict[str, str | int]:
    moments = {"first_at": seen.first_at.isoformat(), "last_at": seen.last_at.isoformat()}
    return {**asdict(seen), **moments}


def _text(found: Sequence[SeenTool]) -> str:
    table = [["tool", "project", "key", "first seen", "last seen", "requests", "calls"]]
    table += [
        [
            _short(one.tool),
            _short(one.project),
            _short(one.key),
            f"{one.first_at:%Y-%m-%d %H:%M}",
            f"{one.last_at:%Y-%m-%d %H:%M}",
            f"{one.requests:,}",
            f"{one.calls:,}",
        ]
        for one in found
    ]
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(size) if place < 5 else cell.rjust(size)
            for place, (cell, size) in enumerate(zip(line, widths, strict=True))
        )
        for line in table
    ]
    return "\n".join(line.rstrip() for line in lines)


def _short(name: str) -> str:
    shown = safe(" ".join(name.split()))
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"
