"""Databases of each kind, empty, for tests that hold on all of them."""

import shutil
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.pool import NullPool

from turnout.store.database import Database
from turnout.testing.fleet.postgres import empty_database

KINDS = ["sqlite", "postgresql"]

_EMPTY = """
SET LOCAL lock_timeout = '10s';
DO $$ DECLARE name regclass; used boolean; BEGIN
  FOR name IN SELECT oid::regclass FROM pg_class
      WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> 'alembic_version'
  LOOP
    EXECUTE format('SELECT EXISTS (SELECT FROM %s)', name) INTO used;
    IF used THEN EXECUTE format('TRUNCATE %s CASCADE', name); END IF;
  END LOOP;
  FOR name IN SELECT oid::regclass FROM pg_class WHERE relkind = 'S' LOOP
    PERFORM setval(name, 1, false);
  END LOOP;
END $$"""
"""Truncating all tables, used or not, takes as long as making a database."""


@contextmanager
def url_of(kind: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    """Hand out the URL of a database that holds no table yet."""
    if kind == "sqlite":
        yield f"sqlite:///{folder}/turnout.db"
        return
    server = request.getfixturevalue("postgres_server")
    with empty_database(server, uuid.uuid4().hex) as url:
        yield url


@contextmanager
def tables_of(kind: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    """Hand out the URL of a database whose tables are there and empty; a hundred times as fast."""
    if kind == "sqlite":
        shutil.copyfile(request.getfixturevalue("sqlite_tables"), folder / "turnout.db")
        yield f"sqlite:///{folder}/turnout.db"
        return
    url = request.getfixturevalue("postgres_tables")
    yield url
    with connected(url) as connection:
        connection.execute(text(_EMPTY))


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    """Connect to a database; what is done is committed at the end."""
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        yield connection


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Database]:
    """Open a database with its tables."""
    database = Database(create_engine(url))
    try:
        await database.migrate()
        yield database
    finally:
        await database.close()
