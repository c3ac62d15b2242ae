"""The commands, each of which reads or changes the keys of the store."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from turnout.cli.keys.shown import key_json, key_lines
from turnout.cli.keys.values import EXPIRY, LIMIT, SPEND, Wanted
from turnout.cli.options import config_option, json_option, read_settings, say_json
from turnout.cli.terminal import safe
from turnout.core.clock import SystemClock
from turnout.core.govern.keys import KeyLimits, KeyRecord, Role
from turnout.gateway.keys.desk import KeyDesk
from turnout.wiring.keys import doubt_of, open_keys

__all__ = ["command"]

Command = TypeVar("Command", bound=Callable[..., Any])
T = TypeVar("T")


def _settings_of_a_key(command: Command) -> Command:
    """Add the options that say what a key may do."""
    for option in reversed(
        [
            click.option("--project", metavar="NAME", help="Whose usage it counts as."),
            click.option(
                "--policy",
                "policies",
                multiple=True,
                metavar="NAME",
                help="Its policy; given again: others that a request may choose.",
            ),
            click.option(
                "--role",
                type=click.Choice(get_args(Role)),
                help="models: asks models only; viewer: reads the project's runs; member: submits "
                "and cancels runs too; approver: also decides on approvals; worker: for workers of "
                "the service, whose model calls count on the keys that ordered the runs.",
            ),
            click.option("--requests-per-minute", type=LIMIT, help="Or `none`."),
            click.option("--concurrency", type=LIMIT, help="Requests at once, or `none`."),
            click.option("--spend-per-day", type=SPEND, help="US dollars, or `none`."),
            click.option("--expires", type=EXPIRY, help="`30d`, `12h`, a date, or `never`."),
            click.option(
                "--admin/--no-admin",
                default=None,
                help="Whether it may read and change what governs everybody.",
            ),
        ]
    ):
        command = option(command)
    return command


@click.group(
    "keys",
    epilog="\b\nExamples:\n"
    "  KEY=$(turnout keys create ci --policy agents --spend-per-day 20)\n"
    "  turnout keys list\n"
    "  turnout keys update ci --concurrency 8 --requests-per-minute none\n"
    "  turnout keys revoke ci",
)
def command() -> None:
    """Create, list, change and revoke the keys of the gateway.

    A key is shown once, when it is created: only its hash is kept. A gateway that is running
    takes note of every change within a second.
    """


@command.command("create")
@click.argument("name")
@_settings_of_a_key
@json_option
@config_option
def _create(*, name: str, as_json: bool, config: Path | None, **wanted: Any) -> int:
    """Create a key and print it, alone on standard output."""
    now = SystemClock().now()
    start = KeyRecord(name, "default", ("default",), KeyLimits(), now, "")
    record = Wanted(**wanted).of(start)
    issued = _run(config, lambda desk: desk.create(record))
    _warn(config, issued.record)
    if as_json:
        say_json({**key_json(issued.record, now), "key": issued.key})
        return 0
    click.echo(issued.key)
    click.echo("\n".join(key_lines([issued.record], now)), err=True)
    click.echo("It is shown this once; only its hash is kept.", err=True)
    return 0


@command.command("list")
@click.option("--all", "all_keys", is_flag=True, help="Also those that were revoked.")
@json_option
@config_option
def _list(*, all_keys: bool, as_json: bool, config: Path | None) -> int:
    """List the keys."""
    now = SystemClock().now()
    records = _run(config, lambda desk: desk.list())
    shown = [record for record in records if all_keys or record.revoked_at is None]
    if as_json:
        say_json({"keys": [key_json(record, now) for record in shown]})
    elif not shown:
        click.echo("There are no keys. Create one: turnout keys create NAME")
    else:
        click.echo("\n".join(key_lines(shown, now)))
    return 0


@command.command("update")
@click.argument("name")
@_settings_of_a_key
@json_option
@config_option
def _update(*, name: str, as_json: bool, config: Path | None, **wanted: Any) -> int:
    """Change what a key may do; what is not named stays."""
    record = _run(config, lambda desk: desk.update(name, Wanted(**wanted).of))
    _warn(config, record)
    _tell(record, as_json=as_json)
    return 0


@command.command("revoke")
@click.argument("name")
@json_option
@config_option
def _revoke(*, name: str, as_json: bool, config: Path | None) -> int:
    """Shut a key for good; its name is not given again."""
    record = _run(config, lambda desk: desk.revoke(name))
    if as_json:
        _tell(record, as_json=True)
    else:
        click.echo(safe(f"{record.name} is revoked."))
    return 0


def _tell(record: KeyRecord, *, as_json: bool) -> None:
    now = SystemClock().now()
    if as_json:
        say_json(key_json(record, now))
    else:
        click.echo("\n".join(key_lines([record], now)))


def _warn(config: Path | None, record: KeyRecord) -> None:
    if doubt := asyncio.run(doubt_of(read_settings(config), record)):
        click.echo(safe(f"warning: {doubt}"), err=True)


def _run(config: Path | None, work: Callable[[KeyDesk], Awaitable[T]]) -> T:
    settings = read_settings(config)

    async def run() -> T:
        async with open_keys(settings) as desk:
            return await work(desk)

    return asyncio.run(run())
