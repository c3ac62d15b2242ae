from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.workspaces import opened

from turnout.sandbox.base import Sandbox
from turnout.sandbox.bubblewrap import BubblewrapDriver
from turnout.testing.repositories import TinyRepository


@pytest.fixture(scope="module")
def driver(sandbox_state: Path) -> BubblewrapDriver:
    """Return one driver on the state folder of all tests."""
    return BubblewrapDriver(sandbox_state)


@pytest.fixture
def repository(tmp_path: Path) -> TinyRepository:
    """Make a repository of a few files."""
    return TinyRepository(tmp_path / "source", {"a.txt": "one\ntwo\n", "sub/b.txt": "b\n"})


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> TinyRepository:
    """Make such a repository for all workspaces of a module."""
    folder = tmp_path_factory.mktemp("source") / "source"
    return TinyRepository(folder, {"a.txt": "one\ntwo\n", "sub/b.txt": "b\n"})


@pytest.fixture
async def workspace(driver: BubblewrapDriver, source: TinyRepository) -> AsyncIterator[Sandbox]:
    """Start a sandbox on it."""
    async with opened(driver, source) as sandbox:
        yield sandbox
