"""`turnout prune`: gives back the disk that past runs have left filled."""

import asyncio
from dataclasses import asdict
from pathlib import Path

import click

from turnout.cli.options import config_option, json_option, read_settings, say_json
from turnout.cli.terminal import plural, safe
from turnout.core.service.retention import Forgotten
from turnout.sandbox.workspace.prune import prune
from turnout.wiring.state import forget_old

__all__ = ["command"]

_GIB = 1 << 30
_MIB = 1 << 20


@click.command(
    "prune",
    epilog="\b\nExamples:\n"
    "  turnout prune\n"
    "  turnout prune --keep-days 7 --keep-gb 20\n"
    "\b\nExit codes:\n"
    "  0  what could be removed is gone\n"
    "  2  wrong usage or configuration",
)
@click.option(
    "--keep-days",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    metavar="DAYS",
    help="Keep what was used within so many days.",
)
@click.option(
    "--keep-gb",
    type=click.FloatRange(min=0),
    metavar="GB",
    help="Keep so many gibibytes at most, what was used last first.",
)
@json_option
@config_option
def command(*, keep_days: float, keep_gb: float | None, as_json: bool, config: Path | None) -> int:
    """Remove fetched repositories, trees and environments that no run has used for some time.

    They are made again when a run needs them. What was used within the last 26 hours stays, models
    stay as well, and runs under way are not disturbed. Of past runs, receipts and other records
    goes what is older than `[service.retention]` keeps: by default nothing.
    """
    settings = read_settings(config)
    home = settings.home
    most = None if keep_gb is None else int(keep_gb * _GIB)
    removed = asyncio.run(prune(home, keep_days=keep_days, keep_bytes=most))
    forgets = settings.service.retention.forgets
    forgotten = asyncio.run(forget_old(settings)) if forgets else Forgotten()
    if as_json:
        names, size_bytes = list(removed.names), removed.size_bytes
        say_json({"removed": names, "size_bytes": size_bytes, "forgotten": asdict(forgotten)})
        return 0
    for name in removed.names:
        click.echo(safe(name))
    size = f"{removed.size_bytes / _MIB:,.0f} MiB"
    click.echo(f"Removed {plural(len(removed.names), 'item')}, {size}.")
    if forgotten:
        counts = ", ".join(f"{name} {count}" for name, count in asdict(forgotten).items() if count)
        click.echo(f"Forgotten: {counts}.")
    return 0
