"""`turnout connections`: the servers whose tools the gateway runs."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click

from turnout.cli.options import config_option, json_option, read_settings, say_json
from turnout.cli.terminal import plural, safe
from turnout.core.govern.connections import Connection, ConnectionTool
from turnout.core.json import JsonObject, JsonValue
from turnout.errors import UnfitError
from turnout.wiring.connections import CheckedConnection, check_connections

__all__ = ["command"]

_NONE = "No connection is configured: write a table [connections.NAME] in turnout.toml."


@click.group("connections")
def command() -> None:
    """List the MCP servers of turnout.toml, and find out whether they answer.

    The gateway runs their tools for requests that name them; credentials stay with it.
    """


@command.command("list")
@json_option
@config_option
def _list(*, as_json: bool, config: Path | None) -> int:
    """List the connections without asking any of them; no credential is shown."""
    known = list(read_settings(config).connections.values())
    if as_json:
        say_json({"connections": [_object(held) for held in known]})
    elif not known:
        click.echo(_NONE)
    for held in () if as_json else known:
        click.echo(safe(f"{held.name}  {_place(held)}{_notes(held)}"))
    return 0


@command.command("check")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@json_option
@config_option
def _check(*, names: Sequence[str], as_json: bool, config: Path | None) -> int:
    """Ask the servers for their tools, all of them where none is named.

    Programs are started for it and ended again; no tool is run. Ends with 4 where a server did
    not answer.
    """
    checked = asyncio.run(check_connections(read_settings(config), tuple(names)))
    if as_json:
        say_json({"connections": [_checked(one) for one in checked]})
    elif not checked:
        click.echo(_NONE)
    else:
        for one in checked:
            _say(one)
    failed = [one for one in checked if one.error]
    if failed and not as_json:
        raise UnfitError(f"{plural(len(failed), 'connection')} cannot be used.")
    return 4 if failed else 0


def _say(one: CheckedConnection) -> None:
    if one.error:
        click.echo(safe(f"{one.name}  failed: {one.error} {one.mend}".rstrip()))
        return
    click.echo(safe(f"{one.name}  {plural(len(one.tools), 'tool')}"))
    for tool in one.tools:
        click.echo(safe(f"  {_line(one.name, tool)}"))


def _line(name: str, tool: ConnectionTool) -> str:
    said = " ".join(tool.description.split())
    only = " (reads only)" if tool.read_only else ""
    return f"mcp:{name}/{tool.name}{only}  {said[:80]}".rstrip()


def _place(held: Connection) -> str:
    return held.url or " ".join(held.command)


def _notes(held: Connection) -> str:
    notes = [f"only {', '.join(held.allow)}"] if held.allow else []
    notes += ["reads only"] if held.read_only else []
    notes += [f"{held.unset} is not set"] if held.unset else []
    return f"  ({'; '.join(notes)})" if notes else ""


def _object(held: Connection) -> JsonObject:
    return {
        "name": held.name,
        "url": held.url or None,
        "command": list(held.command) or None,
        "allow": list(held.allow),
        "read_only": held.read_only,
        "unset": held.unset or None,
    }


def _checked(one: CheckedConnection) -> JsonObject:
    tools: list[JsonValue] = [
        {"name": tool.name, "read_only": tool.read_only} for tool in one.tools
    ]
    return {"name": one.name, "ok": not one.error, "error": one.error or None, "tools": tools}
