"""Reading of usage from the store."""

import asyncio
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import get_args

import click

from turnout.cli.options import config_option, json_option, read_settings, say_json
from turnout.cli.usage.table import usage_text
from turnout.core.govern.moments import moment_of
from turnout.core.govern.usage import (
    MOST_GROUPS,
    MOST_ROWS,
    UsageGroup,
    UsageQuery,
    UsageReport,
    groups_of,
    usage_object,
)
from turnout.core.ids import SessionId
from turnout.errors import UsageError
from turnout.settings import Settings
from turnout.wiring.usage import open_usage

__all__ = ["command"]


class _Groups(click.ParamType[tuple[UsageGroup, ...]]):
    """Names with commas between them."""

    name = "groups"

    def convert(
        self,
        value: str | tuple[UsageGroup, ...],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[UsageGroup, ...]:
        if isinstance(value, tuple):
            return value
        asked = list(dict.fromkeys(value.split(",")))
        known: tuple[UsageGroup, ...] = get_args(UsageGroup)
        groups = tuple(name for word in asked for name in known if name == word)
        if len(groups) != len(asked) or len(groups) > MOST_GROUPS:
            self.fail(f"{value!r}: up to {MOST_GROUPS} of {', '.join(known)}.", param, ctx)
        return groups


@click.command(
    "usage",
    epilog="\b\nExamples:\n"
    "  turnout usage\n"
    "  turnout usage --by objective,model --since 7d\n"
    "  turnout usage --by call_kind --session run-3f9c2a81b0d4\n"
    "  turnout usage --by day --json",
)
@click.option(
    "--by",
    type=_Groups(),
    default="session",
    show_default=True,
    metavar="GROUP[,GROUP]",
    help=f"What to group requests by: {', '.join(get_args(UsageGroup))}.",
)
@click.option(
    "--since", default="30d", show_default=True, metavar="WHEN", help="7d, 12h, a date or a time."
)
@click.option("--until", metavar="WHEN", help="The same; by default now.")
@click.option("--session", metavar="ID", help="Requests of one session only.")
@click.option("--key", metavar="NAME", help="Requests of one key only.")
@click.option("--project", metavar="NAME", help="Requests of one project only.")
@click.option(
    "--limit", type=click.IntRange(1, MOST_ROWS), default=20, show_default=True, metavar="ROWS"
)
@json_option
@config_option
def command(
    *,
    by: tuple[UsageGroup, ...],
    since: str,
    until: str | None,
    session: str | None,
    key: str | None,
    project: str | None,
    limit: int,
    as_json: bool,
    config: Path | None,
) -> int:
    """Add up what model calls used: requests, errors, tokens, cost, time.

    The most expensive groups come first, days in their order. A session is one run of an agent,
    and of one key.
    Latency is that of whole answers, ttft the time to the first token of streams; p50 and p95
    are the smallest values that half, and 95 of 100, of them do not exceed.
    """
    asked = UsageQuery(
        by=groups_of(by, key=key),
        session=SessionId(session) if session is not None else None,
        key=key,
        project=project,
        limit=limit,
    )
    query, report = asyncio.run(_report(read_settings(config), asked, since, until))
    if as_json:
        say_json(usage_object(query, report))
        return 0
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    click.echo(usage_text(query, report, width=width))
    return 0


async def _report(
    settings: Settings, asked: UsageQuery, since: str, until: str | None
) -> tuple[UsageQuery, UsageReport]:
    async with open_usage(settings) as office:
        now = office.clock.now()
        query = replace(
            asked, since=moment_of(since, now), until=moment_of(until, now) if until else None
        )
        if query.since and query.until and query.since >= query.until:
            raise UsageError("Nothing lies between these moments.", mend="Write the earlier first.")
        return query, await office.usage.usage(query)
