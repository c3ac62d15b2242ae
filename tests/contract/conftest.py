import pytest

from turnout.store.database import open_database


@pytest.fixture
async def database(tmp_path):
    """Hand out an empty database."""
    async with open_database(tmp_path / "turnout.db") as opened:
        yield opened
