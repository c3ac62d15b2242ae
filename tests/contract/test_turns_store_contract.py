from datetime import timedelta

import pytest
from tests.samples import STRANGE

from turnout.store.turns import TurnsStore
from turnout.testing.clock import FrozenClock
from turnout.testing.connections import MemoryTurns


@pytest.fixture(params=["memory", "sql"])
def store(request, database):
    """Return an empty one of each kind."""
    return MemoryTurns() if request.param == "memory" else TurnsStore(database, FrozenClock())


async def test_what_is_kept_is_found_under_its_call(store):
    """Exactly, and only what was asked for; the last text counts."""
    await store.keep("k", "call_1", "old")
    await store.keep("k", "call_1", STRANGE)
    await store.keep("k", STRANGE, "two")
    found = await store.get("k", ["call_0", "call_1", STRANGE])
    assert dict(found) == {"call_1": STRANGE, STRANGE: "two"}
    assert dict(await store.get("k", [])) == {}


async def test_another_scope_sees_nothing(store):
    """One key's turns are no other key's."""
    await store.keep("mine", "call_1", "text")
    assert dict(await store.get("yours", ["call_1"])) == {}


async def test_a_conversation_of_thousands_of_calls_is_searched(store):
    """However many parameters the database takes at once."""
    await store.keep("k", "call_3999", "text")
    found = await store.get("k", [f"call_{n}" for n in range(4_000)])
    assert dict(found) == {"call_3999": "text"}


async def test_old_turns_are_forgotten(any_database):
    """Those of before a moment; the others stay."""
    clock = FrozenClock()
    store = TurnsStore(any_database, clock)
    await store.keep("k", "old", "text")
    clock.advance(10)
    await store.keep("k", "new", "text")
    assert await store.forget(clock.now() - timedelta(seconds=5)) == 1
    assert list(await store.get("k", ["old", "new"])) == ["new"]
