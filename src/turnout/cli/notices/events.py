"""`turnout events`: what happened at the gateway."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import get_args

import click

from turnout.cli.options import config_option, json_option, read_settings, say_json
from turnout.cli.terminal import safe
from turnout.core.govern.happenings import Happening, HappeningKind
from turnout.core.govern.moments import moment_of
from turnout.settings import Settings
from turnout.wiring.usage import open_usage

__all__ = ["command"]


@click.command(
    "events",
    epilog="\b\nExamples:\n"
    "  turnout events\n"
    "  turnout events --kind tool.first_seen --kind tool.outside_list --since 7d",
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(get_args(HappeningKind)),
    help="Events of this kind only; may be given again.",
)
@click.option("--key", metavar="NAME", help="Events about one key only.")
@click.option("--since", metavar="WHEN", help="7d, 12h, a date or a time.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@json_option
@config_option
def command(
    *,
    kinds: tuple[HappeningKind, ...],
    key: str | None,
    since: str | None,
    limit: int,
    as_json: bool,
    config: Path | None,
) -> int:
    """List what happened at the gateway, newest first.

    New tools, tools outside a list or refused, capped sessions, deployments that were left out,
    policies that changed. Each is there once, however many requests showed it; a tool outside a
    list once a day for each key.
    """
    found = asyncio.run(_events(read_settings(config), kinds, key, since, limit))
    if as_json:
        say_json({"events": [{**asdict(one), "at": one.at.isoformat()} for one in found]})
    elif not found:
        click.echo("Nothing has happened.")
    for one in () if as_json else found:
        click.echo(safe(f"{one.at:%Y-%m-%d %H:%M}  {one.kind:20}  {' '.join(one.text.split())}"))
    return 0


async def _events(
    settings: Settings,
    kinds: Sequence[HappeningKind],
    key: str | None,
    since: str | None,
    limit: int,
) -> Sequence[Happening]:
    async with open_usage(settings) as office:
        moment = moment_of(since, office.clock.now()) if since else None
        return await office.happenings.newest(limit=limit, kinds=kinds, key=key, since=moment)
