"""`turnout audit`: who changed what."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from turnout.cli.options import config_option, json_option, read_settings, say_json
from turnout.cli.terminal import safe
from turnout.core.clock import SystemClock
from turnout.core.govern.audit import AuditFilter, AuditLine, AuditPage
from turnout.core.govern.moments import moment_of
from turnout.core.json import JsonObject
from turnout.settings import Settings
from turnout.wiring.state import open_audit

__all__ = ["command"]


@click.command(
    "audit",
    epilog="\b\nExamples:\n"
    "  turnout audit\n"
    "  turnout audit --action approve_call --since 7d\n"
    "  turnout audit --subject run-3f9c2a81b0d4 --json",
)
@click.option("--actor", metavar="NAME", help="Changes by one key, or by NAME@host.")
@click.option("--project", metavar="NAME", help="Changes by keys of one project.")
@click.option("--action", metavar="NAME", help="One kind of change, such as create_key.")
@click.option("--subject", metavar="ID", help="Changes to one run, key, policy or webhook.")
@click.option("--since", metavar="WHEN", help="7d, 12h, a date or a time.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@json_option
@config_option
def command(
    *,
    actor: str | None,
    project: str | None,
    action: str | None,
    subject: str | None,
    since: str | None,
    limit: int,
    as_json: bool,
    config: Path | None,
) -> int:
    """List who changed what, newest first.

    Runs that were ordered, cancelled, decided on; keys, policies and webhooks that were made,
    changed and removed: over HTTP and from the command line of the machine.
    """
    wanted = AuditFilter(actor, project, action, subject)
    page, kinds = asyncio.run(_page(read_settings(config), wanted, since, limit))
    if as_json:
        say_json({"changes": [_object(line) for line in page.lines], "next_cursor": page.before})
    elif not page.lines:
        click.echo(safe(_nothing(wanted, kinds)))
    for line in () if as_json else page.lines:
        click.echo(safe(_text(line)))
    return 0


async def _page(
    settings: Settings, wanted: AuditFilter, since: str | None, limit: int
) -> tuple[AuditPage, Sequence[str]]:
    """Return the changes, and the kinds of all that are on record where there are none."""
    moment = moment_of(since, SystemClock().now()) if since else None
    async with open_audit(settings) as audit:
        page = await audit.page(replace(wanted, since=moment), before=None, limit=limit)
        return page, () if page.lines else await audit.actions()


def _nothing(wanted: AuditFilter, kinds: Sequence[str]) -> str:
    """Say that there is no line, and why."""
    if not kinds:
        return "Nobody has changed anything."
    if wanted.action is None or wanted.action in kinds:
        return "No change matches."
    return f"No change is called {wanted.action!r}. On record are: {', '.join(kinds)}."


def _text(line: AuditLine) -> str:
    change = line.change
    detail = " ".join(f"{name}={value}" for name, value in change.detail.items())
    whole = f"{change.at:%Y-%m-%d %H:%M}  {change.actor:20} {change.action:18} {change.subject}"
    return " ".join(f"{whole}  {detail}".split("\n")).rstrip()


def _object(line: AuditLine) -> JsonObject:
    change = line.change
    return {
        "number": line.number,
        "at": change.at.isoformat(),
        "actor": change.actor,
        "project": change.project,
        "action": change.action,
        "subject": change.subject,
        "detail": dict(change.detail),
    }
