"""`turnout db`: look at the database, bring it up to date, and back it up."""

import asyncio
from pathlib import Path

import click

from turnout.cli.options import config_option, json_option, read_settings, say_json
from turnout.cli.terminal import safe
from turnout.errors import StoreError, UnfitError
from turnout.store.upkeep import Standing, copy_database, dump_line, stands
from turnout.wiring.state import database_of, open_records

__all__ = ["command"]

_SAID = {
    "empty": "has no tables yet; whatever uses it first makes them",
    "current": "is up to date",
    "older": "is older than this version; `turnout db upgrade` brings it up to date",
    "newer": "is newer than this version: install a newer turnout, or put a backup in its place",
}
_MIB = 1 << 20


@click.group("db")
def command() -> None:
    """Look at the database, bring it up to date, and back it up."""


@command.command(
    "status",
    epilog="\b\nExit codes:\n"
    "  0  it is up to date, or has no tables yet\n"
    "  1  it is older than this version, which still reads all that it holds\n"
    "  4  it is newer than this version, or cannot be read",
)
@json_option
@config_option
def _status(*, as_json: bool, config: Path | None) -> int:
    """Say which database is used, and which form its tables have. Nothing is changed."""
    found = asyncio.run(stands(database_of(read_settings(config))))
    _say(found, as_json=as_json)
    return {"older": 1, "newer": 4}.get(found.verdict, 0)


@command.command("upgrade")
@json_option
@config_option
def _upgrade(*, as_json: bool, config: Path | None) -> int:
    """Bring the tables to the form of this version.

    Every command does that when it opens the database; this one does nothing else. Back it up
    first: there is no way back but the backup.
    """
    settings = read_settings(config)
    where = database_of(settings)
    if asyncio.run(stands(where)).verdict == "newer":
        raise StoreError(
            f"The database {_SAID['newer'].partition(':')[0]}.",
            mend="Install the newest version of turnout, or name another database.",
        )

    async def opened() -> Standing:
        async with open_records(settings):
            pass
        return await stands(where)

    _say(asyncio.run(opened()), as_json=as_json)
    return 0


@command.command("backup", epilog="\b\nExample:\n  turnout db backup /srv/backup/turnout.db")
@click.argument("target", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")
@json_option
@config_option
def _backup(*, target: Path, as_json: bool, config: Path | None) -> int:
    """Copy an SQLite database to FILE, as it is at one moment, while services use it.

    A PostgreSQL database is backed up by its own programs: the line that does it is shown.
    """
    where = database_of(read_settings(config))
    if not isinstance(where, Path):
        raise UnfitError(
            "A PostgreSQL database is backed up by its own programs.",
            mend=f"Run: {dump_line(where, target)}",
        )
    size = copy_database(where, target)
    if as_json:
        say_json({"file": str(target), "size_bytes": size})
    else:
        click.echo(safe(f"{target}: {size / _MIB:,.1f} MiB."))
    return 0


def _say(found: Standing, *, as_json: bool) -> None:
    if as_json:
        say_json(
            {
                "kind": found.kind,
                "place": found.place,
                "revision": found.revision,
                "newest": found.newest,
                "verdict": found.verdict,
            }
        )
        return
    revision = f"revision {found.revision}" if found.revision else "empty"
    click.echo(safe(f"{found.place} ({found.kind}, {revision})"))
    click.echo(f"It {_SAID[found.verdict]}.")
