from dataclasses import replace

import pytest
from tests.samples import NOON

from turnout.core.govern.keys import KeyEntry, KeyLimits, KeyRecord
from turnout.errors import ConflictError, NotFoundError
from turnout.store.keys import KeysStore
from turnout.testing.books import MemoryKeys

RECORD = KeyRecord(
    name="ci",
    project="web",
    policies=("default", "review"),
    limits=KeyLimits(requests_per_minute=60, concurrency=4, spend_per_day=5_000_000),
    created_at=NOON,
    hint="tk-abcd…wxyz",
)


@pytest.fixture(params=["memory", "sql"])
def keys(request, database):
    """Return an empty one of each kind."""
    return MemoryKeys() if request.param == "memory" else KeysStore(database)


async def test_a_key_is_kept_as_it_was_made(keys):
    """All of it but the key."""
    await keys.add(KeyEntry("ab" * 32, RECORD))
    assert tuple(await keys.all()) == (KeyEntry("ab" * 32, RECORD),)


async def test_keys_come_by_name(keys):
    """So that a list is the same each time."""
    for number, name in enumerate(["b", "c", "a"]):
        await keys.add(KeyEntry(f"{number}", replace(RECORD, name=name)))
    assert [entry.record.name for entry in await keys.all()] == ["a", "b", "c"]


async def test_every_change_shows_in_the_revision(keys):
    """Gateways of other processes look at nothing else."""
    seen = [await keys.revision()]
    await keys.add(KeyEntry("1", RECORD))
    seen.append(await keys.revision())
    await keys.put(replace(RECORD, revoked_at=NOON))
    seen.append(await keys.revision())
    assert seen[0] == 0
    assert seen[0] < seen[1] < seen[2]


async def test_a_name_is_given_once(keys):
    """Receipts and sessions name the key."""
    await keys.add(KeyEntry("1", RECORD))
    with pytest.raises(ConflictError, match="'ci'"):
        await keys.add(KeyEntry("2", RECORD))
    assert [entry.digest for entry in await keys.all()] == ["1"]


async def test_a_change_leaves_the_key_itself_alone(keys):
    """Its holder goes on under the new limits."""
    await keys.add(KeyEntry("1", RECORD))
    changed = replace(RECORD, limits=KeyLimits(), expires_at=NOON, admin=True)
    await keys.put(changed)
    assert tuple(await keys.all()) == (KeyEntry("1", changed),)


async def test_what_is_not_there_cannot_be_changed(keys):
    """It is not made either."""
    with pytest.raises(NotFoundError, match="'ci'"):
        await keys.put(RECORD)
    assert tuple(await keys.all()) == ()
