"""What the last release writes and reads goes on while the tables are newer than it is.

Machines are upgraded one after the other: the first one changes the tables under all others.
"""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import (
    BigInteger,
    Connection,
    DateTime,
    Engine,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    create_engine,
    delete,
    insert,
    inspect,
    select,
)
from sqlalchemy.pool import NullPool
from tests.databases import KINDS, url_of

import turnout.store
from turnout.store.database import database_at
from turnout.store.revision import revision_of
from turnout.store.schema import HEAD

RELEASED = "0003"
"""The newest migration of the last release."""

VALUES: dict[type, Any] = {
    Text: "x",
    Integer: 1,
    BigInteger: 1,
    Float: 1.5,
    LargeBinary: b"x",
    DateTime: datetime(2026, 1, 1, tzinfo=UTC),
}


def migrate(connection: Connection, revision: str) -> None:
    """Run the migrations up to one."""
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(turnout.store.__path__[0]) / "migrations"))
    command.upgrade(config, revision)


@contextmanager
def opened(url: str) -> Iterator[Engine]:
    """Open a database without a pool."""
    engine = create_engine(url, poolclass=NullPool)
    yield engine
    engine.dispose()


def row(table: Table) -> dict[str, Any]:
    """Return a row that names every column that the last release knew, and no other."""
    return {
        column.name: next(value for kind, value in VALUES.items() if isinstance(column.type, kind))
        for column in table.columns
        if not (column.primary_key and column.autoincrement is True)
    }


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_releases_statements_hold_on_the_newest_tables(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Rows that are written by its columns alone are taken, and what it reads is there.

    A column that it does not know must be able to do without it; none that it knows may go, or
    ask for more than it did.
    """
    known = MetaData()
    with url_of(kind, request, tmp_path) as url, opened(url) as engine:
        with engine.begin() as connection:
            migrate(connection, RELEASED)
            known.reflect(connection)
            known.remove(known.tables["alembic_version"])
            nullable = _nullable(connection, known)
            first = _fill(connection, known)
        with engine.begin() as connection:
            migrate(connection, "head")
            assert _nullable(connection, known) == nullable
            for table in known.sorted_tables:
                found = connection.execute(select(*table.columns)).mappings().one()
                assert set(first[table.name]) <= set(found), table.name
            for table in reversed(known.sorted_tables):
                connection.execute(delete(table))
            _fill(connection, known)


async def test_machines_that_start_at_once_upgrade_once(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """One does it, the others find it done; no start fails."""
    with url_of("postgresql", request, tmp_path) as url, opened(url) as engine:
        with engine.begin() as connection:
            migrate(connection, RELEASED)
        async with AsyncExitStack() as stack:
            databases = [database_at(url) for _ in range(4)]
            for each in databases:
                stack.push_async_callback(each.close)
            await asyncio.gather(*(each.migrate() for each in databases))
            assert await databases[0].read(revision_of) == HEAD


def _fill(connection: Connection, known: MetaData) -> dict[str, dict[str, Any]]:
    rows = {}
    for table in known.sorted_tables:
        rows[table.name] = row(table)
        connection.execute(insert(table), rows[table.name])
    return rows


def _nullable(connection: Connection, known: MetaData) -> dict[tuple[str, str], bool]:
    """Return of each column that is known whether it may be left out."""
    found = inspect(connection)
    return {
        (table.name, column["name"]): column["nullable"]
        for table in known.sorted_tables
        for column in found.get_columns(table.name)
        if column["name"] in table.columns
    }
