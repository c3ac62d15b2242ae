import pytest
from tests.samples import STRANGE

from turnout.store.probes import ProbesStore
from turnout.testing.stores import MemoryProbesStore


@pytest.fixture(params=["memory", "sql"])
def store(request, database):
    """Return an empty one of each kind."""
    return MemoryProbesStore() if request.param == "memory" else ProbesStore(database)


async def test_a_result_is_kept_until_a_newer_one(store):
    """Under its key alone, with whatever characters it holds."""
    await store.put("one", "1")
    await store.put("one", STRANGE)
    assert await store.get("one") == STRANGE
    assert await store.get("two") is None
