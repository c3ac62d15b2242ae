from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.contract.sandbox_kinds import KINDS, Kind, started

from turnout.sandbox.base import Sandbox
from turnout.store.database import open_database


@pytest.fixture
async def database(tmp_path):
    """Hand out an empty database."""
    async with open_database(tmp_path / "turnout.db") as opened:
        yield opened


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
