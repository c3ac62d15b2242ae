"""What whoever runs a database does with it: look at its form, and copy it while it is used."""

import os
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from shlex import quote
from typing import Final, Literal

from sqlalchemy import make_url

from turnout.errors import StoreError
from turnout.store.database import database_at, sqlite_path
from turnout.store.migrate import known_revisions
from turnout.store.revision import revision_of
from turnout.store.schema import HEAD

__all__ = ["Standing", "copy_database", "dump_line", "stands"]

_BUSY_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Standing:
    """Which form the tables of a database have."""

    kind: Literal["sqlite", "postgresql"]
    place: str
    """Path, or URL without its password."""
    revision: str | None
    """Newest migration that was run; None where there is no table."""
    newest: str = HEAD
    """Newest migration that this version knows."""

    @property
    def verdict(self) -> Literal["empty", "current", "older", "newer"]:
        """How that compares; newer than this version is all that it does not know."""
        if self.revision is None:
            return "empty"
        if self.revision == self.newest:
            return "current"
        return "older" if self.revision in known_revisions() else "newer"


async def stands(where: Path | str) -> Standing:
    """Look at a database and leave it as it is; `StoreError` where it cannot be read."""
    path = sqlite_path(where)
    if path is None:
        shown = make_url(str(where)).render_as_string(hide_password=True)
        return Standing("postgresql", shown, await _revision(where))
    revision = await _revision(path) if path.is_file() else None
    return Standing("sqlite", str(path), revision)


async def _revision(where: Path | str) -> str | None:
    database = database_at(where)
    try:
        return await database.read(revision_of)
    finally:
        await database.close()


def copy_database(source: Path, target: Path) -> int:
    """Copy an SQLite database as it is at one moment, whoever writes it; returns its bytes.

    The copy is there whole or not at all. `StoreError` where it cannot be made, or its place is
    taken.
    """
    if not source.is_file():
        raise StoreError(
            f"There is no database {source}.", mend="Set TURNOUT_HOME to the folder that holds it."
        )
    made = target.with_name(f".{target.name}-{token_hex(4)}")
    try:
        os.close(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with (
            closing(sqlite3.connect(source, timeout=_BUSY_SECONDS)) as reading,
            closing(sqlite3.connect(made)) as writing,
        ):
            reading.backup(writing)
            # The file alone is to be enough.
            writing.execute("PRAGMA journal_mode = DELETE")
            (found,) = writing.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise StoreError(f"The database {source} is damaged: {found}.")
        os.link(made, target)
        return target.stat().st_size
    except FileExistsError as error:
        raise StoreError(f"{target} is there already.", mend="Name another file.") from error
    except FileNotFoundError as error:
        folder = target.absolute().parent
        raise StoreError(
            f"There is no folder {folder}.", mend=f"Make it first: mkdir -p {quote(str(folder))}"
        ) from error
    except OSError as error:
        raise StoreError(
            f"{target} cannot be written: {error.strerror}.",
            mend="Name a file in a folder that you can write, with room for the copy.",
        ) from error
    except sqlite3.Error as error:
        raise StoreError(f"The database {source} cannot be copied: {error}.") from error
    finally:
        with suppress(OSError):
            made.unlink()


def dump_line(url: str, target: Path) -> str:
    """Return the command that backs a PostgreSQL database up, without its password."""
    parts = make_url(url).set(drivername="postgresql")._replace(password=None)
    place = parts.render_as_string(hide_password=False)
    return f"pg_dump --format=custom --file={quote(str(target))} {quote(place)}"
