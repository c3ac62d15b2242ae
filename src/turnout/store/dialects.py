"""All that differs between databases: engines, upserts, and what their errors mean."""

import os
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import URL, Connection, Engine, Table, case, create_engine, event, make_url, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, OperationalError

from turnout.errors import ConfigError, MissingExtraError, StoreError

__all__ = [
    "Durability",
    "explain",
    "insert_missing",
    "insert_or_add",
    "insert_or_replace",
    "is_victim",
    "postgres_engine",
    "reading",
    "relax",
    "seconds_now",
    "serialise",
    "sqlite_engine",
]

Durability = Literal["full", "normal"]
"""full: a commit survives a power cut; normal: it survives the death of the process."""

_BEGIN = "turnout_begin"
_RELAXED = "turnout_relaxed"


def sqlite_engine(path: Path, *, durability: Durability, busy_timeout: float) -> Engine:
    """Return an engine on a file that is created readable by its owner alone.

    Its transactions take the write lock as they begin, unless they are begun `reading`.
    `StoreError` where the file cannot be created.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Closing a file takes every lock on it from the whole process, SQLite's too: one that is
        # there may be open already, and is left alone.
        if not path.is_file():
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        message = f"The database {path} cannot be opened: {error.strerror}."
        raise StoreError(message, mend="Make its folder writable or choose another.") from error
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        # No transaction but those that `_begin` begins.
        connect_args={"timeout": busy_timeout, "isolation_level": None},
    )

    @event.listens_for(engine, "connect")
    def _connect(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {durability}")
        connection.execute("PRAGMA foreign_keys = ON")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        wanted = "normal" if options.get(_RELAXED) else durability
        if connection.info.setdefault(_RELAXED, durability) != wanted:
            connection.exec_driver_sql(f"PRAGMA synchronous = {wanted}")
            connection.info[_RELAXED] = wanted
        connection.exec_driver_sql(options.get(_BEGIN, "BEGIN IMMEDIATE"))

    return engine


def postgres_engine(url: str, *, connect_timeout: float) -> Engine:
    """Return an engine on a PostgreSQL database.

    `ConfigError` for a URL that is none, `MissingExtraError` without its driver.
    """
    try:
        where = make_url(url).set(drivername="postgresql+psycopg")
        return create_engine(
            where,
            connect_args={
                "connect_timeout": max(1, round(connect_timeout)),
                "application_name": "turnout",
                # A server that is cut off is noticed within half a minute.
                "keepalives_idle": 10,
                "keepalives_interval": 5,
                "keepalives_count": 3,
            },
        )
    except (ArgumentError, ValueError):
        raise ConfigError(
            "The URL of the database cannot be read.",
            mend="Write `postgresql://USER:PASSWORD@HOST:PORT/NAME`.",
        ) from None
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"PostgreSQL needs the package {error.name}, which is not installed.",
            mend="Run `pip install 'turnout[postgres]'`.",
        ) from None


def relax(connection: Connection, *, relaxed: bool) -> None:
    """Say whether the next transactions may be lost in a power cut: they need not wait for disk."""
    connection.execution_options(**{_RELAXED: relaxed})


def reading(engine: Engine) -> Engine:
    """Return the same engine for transactions that take no write lock."""
    return engine.execution_options(**{_BEGIN: "BEGIN"})


def serialise(connection: Connection, lock: int) -> None:
    """Let no other transaction past the same `lock` until this one ends."""
    # In SQLite no two transactions write at the same time anyway.
    if connection.dialect.name == "postgresql":
        connection.execute(_LOCK, {"lock": lock})


def seconds_now(connection: Connection) -> float:
    """Return the time by the clock of the database's machine, which all that use it share."""
    return float(connection.scalars(_CLOCKS[connection.dialect.name]).one())


_LOCK = text("SELECT pg_advisory_xact_lock(:lock)")
_CLOCKS = {
    "postgresql": text("SELECT extract(epoch FROM clock_timestamp())"),
    "sqlite": text("SELECT (julianday('now') - 2440587.5) * 86400.0"),
}


def insert_missing(connection: Connection, table: Table, values: Mapping[str, Any]) -> bool:
    """Insert a row unless its primary key, or another unique value, is there; say whether."""
    statement = _insert(connection, table).on_conflict_do_nothing().returning(*table.primary_key)
    return connection.execute(statement, values).first() is not None


def insert_or_replace(
    connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Insert rows; those whose primary key is there are replaced."""
    statement = _insert(connection, table)
    keys = [column.name for column in table.primary_key]
    others = {name: column for name, column in statement.excluded.items() if name not in keys}
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=others), rows)


def insert_or_add(
    connection: Connection,
    table: Table,
    rows: Sequence[Mapping[str, Any]],
    *,
    adds: Sequence[str],
    latest: str,
) -> None:
    """Insert rows; where the primary key is there, add the columns `adds` and keep the rest.

    The column `latest` becomes the later of both.
    """
    statement = _insert(connection, table)
    old, new = table.c, statement.excluded
    later = case((new[latest] > old[latest], new[latest]), else_=old[latest])
    changes = {**{name: old[name] + new[name] for name in adds}, latest: later}
    keys = [column.name for column in table.primary_key]
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=changes), rows)


def _insert(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table)
    return sqlite.insert(table)


def is_victim(error: Exception) -> bool:
    """Say whether a transaction was undone for the sake of others: done again, it may succeed."""
    cause = getattr(error, "orig", None) or error
    return getattr(cause, "sqlstate", None) in _VICTIM_STATES


_VICTIM_STATES = ("40001", "40P01")
"""Not to be had in any order with the others, and deadlock."""


def explain(error: Exception, engine: Engine) -> StoreError:
    """Return the error that says what is wrong with the database and what mends it.

    `error` is SQLAlchemy's, or the driver's own.
    """
    place = engine.url.render_as_string(hide_password=True).removeprefix("sqlite:///")
    cause = getattr(error, "orig", None) or error
    code = getattr(cause, "sqlite_errorname", "")
    for start, (wrong, mend) in _SQLITE_ERRORS.items():
        if code.startswith(start):
            return StoreError(f"The database {place} {wrong}.", mend=mend)
    said = " ".join(str(cause).split()).rstrip(".?")
    # What fails before there is a connection has no state.
    state = getattr(cause, "sqlstate", None) or "08"
    if isinstance(error, OperationalError) and state.startswith(_AWAY_STATES):
        return StoreError(f"The database {place} cannot be used: {said}.", mend=_AWAY)
    return StoreError(f"The database {place} failed: {said}.")


_AWAY_STATES = ("08", "28", "3D", "57P")
"""No connection, no entry, no such database, shutting down."""
_AWAY = (
    "Check that its server runs and that TURNOUT_DATABASE names it; one that does not exist is "
    "made with `createdb NAME`."
)


_SQLITE_ERRORS = {
    "SQLITE_BUSY": (
        "is locked by another process",
        "Wait for the other command to end, or stop it, and try again.",
    ),
    "SQLITE_LOCKED": (
        "is locked by another process",
        "Wait for the other command to end, or stop it, and try again.",
    ),
    "SQLITE_CORRUPT": (
        "is damaged",
        "Move it away to start with an empty record, or put a backup in its place.",
    ),
    "SQLITE_NOTADB": (
        "is not a database of Turnout",
        "Move it away to start with an empty record, or name another file.",
    ),
    "SQLITE_CANTOPEN": ("cannot be opened", "Make the file and its folder readable and writable."),
    "SQLITE_READONLY": ("cannot be written", "Make the file and its folder writable."),
    "SQLITE_PERM": ("cannot be written", "Make the file and its folder writable."),
    "SQLITE_IOERR": ("cannot be read or written", "Check the disk that holds it."),
    "SQLITE_FULL": ("has no room left on its disk", "Free some space and try again."),
}
