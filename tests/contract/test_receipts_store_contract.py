from dataclasses import replace
from datetime import timedelta

import pytest
from tests.samples import NOON, STRANGE, receipt

from turnout.errors import StoreError
from turnout.store.receipts import ReceiptsStore
from turnout.testing.stores import MemoryReceiptsStore


@pytest.fixture(params=["memory", "sql"])
def store(request, database):
    """Return an empty one of each kind."""
    return MemoryReceiptsStore() if request.param == "memory" else ReceiptsStore(database)


async def test_a_receipt_reads_back_equal(store):
    """Nothing of it is lost."""
    await store.add(receipt("req-1"))
    assert await store.get("req-1") == receipt("req-1")


async def test_an_unknown_request_has_no_receipt(store):
    """None, not an error."""
    assert await store.get("req-0") is None


async def test_a_receipt_is_written_once(store):
    """A second one for the same request is refused and the first stands."""
    await store.add(receipt("req-1"))
    with pytest.raises(StoreError, match="already has a receipt"):
        await store.add(receipt("req-1", key="other"))
    assert await store.get("req-1") == receipt("req-1")


async def test_a_session_lists_its_receipts_oldest_first(store):
    """By their moment, then by the order in which they came."""
    late = replace(receipt("req-1"), at=NOON + timedelta(seconds=1))
    for one in (late, receipt("req-2"), receipt("req-3")):
        await store.add(one)
    found = await store.of_session("s", key="k")
    assert [one.request_id for one in found] == ["req-2", "req-3", "req-1"]


async def test_a_session_never_lists_another_keys_receipts(store):
    """The same session id under another key is another session."""
    await store.add(receipt("req-1", key="mine"))
    await store.add(receipt("req-2", key="yours"))
    await store.add(receipt("req-3", session=None, key="mine"))
    assert [one.request_id for one in await store.of_session("s", key="mine")] == ["req-1"]


async def test_ids_from_outside_may_hold_any_character(store):
    """A client chooses its session id."""
    await store.add(receipt("req-1", session=STRANGE))
    assert await store.of_session(STRANGE, key="k") == (receipt("req-1", session=STRANGE),)
