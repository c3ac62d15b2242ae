from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.samples import STRANGE

from turnout.core.govern.closing import StoredResponse
from turnout.core.tools import Holder
from turnout.store.responses import ResponsesStore
from turnout.testing.stores import MemoryResponsesStore

NOW = datetime(2026, 11, 3, 12, 0, tzinfo=UTC)
STORED = StoredResponse(
    scope="k",
    id="req-1",
    items='[{"type":"message","content":"\u00fc \\u0000"}]',
    holder=Holder("m", "p/m"),
    made=1,
    envelope='{"id":"req-1"}',
)


@pytest.fixture(params=["memory", "sql"])
def store(request, database):
    """Return an empty one of each kind."""
    return MemoryResponsesStore() if request.param == "memory" else ResponsesStore(database)


async def test_a_response_comes_back_as_it_was_put(store):
    """Every field, whatever the conversation says."""
    await store.put(STORED, NOW)
    assert await store.get("k", "req-1") == STORED


async def test_another_scope_neither_sees_nor_forgets_it(store):
    """A response belongs to the key that asked for it."""
    mine = replace(STORED, scope=STRANGE)
    await store.put(mine, NOW)
    assert await store.get("k", "req-1") is None
    assert not await store.delete("k", "req-1")
    assert await store.get(STRANGE, "req-1") == mine


async def test_what_is_forgotten_is_not_there(store):
    """Once; a second time there is nothing to forget."""
    await store.put(STORED, NOW)
    assert await store.delete("k", "req-1")
    assert not await store.delete("k", "req-1")
    assert await store.get("k", "req-1") is None


async def test_old_responses_are_forgotten_together(store):
    """Those of before a moment; the one of that moment stays."""
    for place in range(3):
        await store.put(replace(STORED, id=f"req-{place}"), NOW + timedelta(days=place))
    assert await store.forget(NOW + timedelta(days=2)) == 2
    assert await store.get("k", "req-1") is None
    assert await store.get("k", "req-2") is not None
