import pytest
from tests.samples import STRANGE

from turnout.core.govern.closing import MadeCalls
from turnout.core.tools import Holder
from turnout.store.affinity import AffinityStore
from turnout.testing.stores import MemoryAffinityStore

FIRST = Holder("m1", "p/m1")
SECOND = Holder("m2", "p/m2")


def made(scope, calls, holder, reasoning=""):
    """Return a note about calls."""
    return MadeCalls(scope, tuple(calls), holder, reasoning)


@pytest.fixture(params=["memory", "sql"])
def store(request, database):
    """Return an empty one of each kind."""
    return MemoryAffinityStore() if request.param == "memory" else AffinityStore(database)


async def test_the_first_known_call_names_the_holder(store):
    """In the order asked, not in the order noted."""
    await store.remember(made("k", ["call_2"], SECOND))
    await store.remember(made("k", ["call_1"], FIRST))
    assert await store.holder("k", ["call_0", "call_1", "call_2"]) == FIRST


async def test_unknown_calls_have_no_holder(store):
    """Nor has a conversation without calls."""
    assert await store.holder("k", ["call_0"]) is None
    assert await store.holder("k", []) is None


async def test_another_scope_sees_nothing(store):
    """One key's call ids say nothing about another key's."""
    await store.remember(made("mine", ["call_1"], FIRST))
    assert await store.holder("yours", ["call_1"]) is None


async def test_the_last_note_about_a_call_counts(store):
    """A model may reuse an id; noting none, or one twice, is no error."""
    await store.remember(made("k", ["call_1", "call_1"], FIRST))
    await store.remember(made("k", ["call_1"], SECOND))
    await store.remember(made("k", [], FIRST))
    assert await store.holder("k", ["call_1"]) == SECOND


async def test_a_conversation_of_thousands_of_calls_is_searched(store):
    """However many parameters the database takes at once."""
    await store.remember(made("k", ["call_3999", STRANGE], FIRST))
    assert await store.holder("k", [f"call_{n}" for n in range(4_000)]) == FIRST
    assert await store.holder("k", [STRANGE]) == FIRST


async def test_what_was_thought_before_a_call_is_kept_with_it(store):
    """Exactly, and in its scope alone; calls without a thought have none."""
    await store.remember(made("k", ["call_1", "call_2"], FIRST, STRANGE))
    await store.remember(made("k", ["call_3"], FIRST))
    asked = ["call_0", "call_1", "call_2", "call_3"]
    assert await store.reasoning("k", asked) == {"call_1": STRANGE, "call_2": STRANGE}
    assert await store.reasoning("other", asked) == {}
    assert await store.reasoning("k", []) == {}
    assert await store.holder("k", ["call_3"]) == FIRST


async def test_thoughts_before_thousands_of_calls_are_found(store):
    """However many parameters the database takes at once."""
    await store.remember(made("k", ["call_3999"], FIRST, "hm"))
    assert await store.reasoning("k", [f"call_{n}" for n in range(4_000)]) == {"call_3999": "hm"}
