"""Databases of each kind, empty, for tests that hold on all of them."""

import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from tests.postgres import empty_database
from turnout.store.database import Database

KINDS = ["sqlite", "postgresql"]


@contextmanager
def url_of(kind: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    """Hand out the URL of a database that holds no table yet."""
    if kind == "sqlite":
        yield f"sqlite:///{folder}/turnout.db"
        return
    server = request.getfixturevalue("postgres_server")
    with empty_database(server, uuid.uuid4().hex) as url:
        yield url


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Database]:
    """Open a database with its tables."""
    database = Database(create_engine(url))
    try:
        await database.migrate()
        yield database
    finally:
        await database.close()
