from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests import databases
from tests.contract.sandbox_kinds import KINDS, Kind, started

from turnout.sandbox.base import Sandbox
from turnout.store.revision import create_tables
from turnout.testing.fleet.postgres import empty_database


@pytest.fixture(params=databases.KINDS)
def database_url(request, tmp_path):
    """Hand out the URL of a database of each kind that holds no table yet."""
    with databases.url_of(request.param, request, tmp_path) as url:
        yield url


@pytest.fixture(scope="session")
def sqlite_tables(tmp_path_factory):
    """Make a file with empty tables, to be copied."""
    path = tmp_path_factory.mktemp("tables") / "turnout.db"
    with databases.connected(f"sqlite:///{path}") as connection:
        create_tables(connection)
    return path


@pytest.fixture(scope="session")
def postgres_tables(postgres_server):
    """Make a database with empty tables, to be emptied after each test."""
    with empty_database(postgres_server, "tables") as url:
        with databases.connected(url) as connection:
            create_tables(connection)
        yield url


@pytest.fixture(params=databases.KINDS)
async def any_database(request, tmp_path):
    """Hand out a database of each kind with empty tables."""
    with databases.tables_of(request.param, request, tmp_path) as url:
        async with databases.opened(url) as each:
            yield each


@pytest.fixture
def database(any_database):
    """Hand out the same, to suites whose stores are in memory as well."""
    return any_database


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=list(KINDS))
async def kind(request: pytest.FixtureRequest, sandbox_state: Path) -> AsyncIterator[Kind]:
    """Open each kind of sandbox."""
    async with KINDS[request.param](sandbox_state) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def sandbox(kind: Kind) -> AsyncIterator[Sandbox]:
    """Start an empty sandbox of each kind."""
    async with started(kind) as each:
        yield each


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def used(kind: Kind) -> AsyncIterator[Sandbox]:
    """Start a sandbox of each kind for all tests of a module that do not ask what was before."""
    async with started(kind) as each:
        yield each
