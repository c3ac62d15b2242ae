from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests import databases
from tests.contract.sandbox_kinds import KINDS, Kind, started

from turnout.sandbox.base import Sandbox


@pytest.fixture(params=databases.KINDS)
def database_url(request, tmp_path):
    """Hand out the URL of a database of each kind that holds no table yet."""
    with databases.url_of(request.param, request, tmp_path) as url:
        yield url


@pytest.fixture
async def any_database(database_url):
    """Hand out an empty database of each kind."""
    async with databases.opened(database_url) as each:
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
