"""Keys are made, changed and shut; what they cannot be is refused."""

from dataclasses import replace
from datetime import timedelta

import pytest

from turnout.core.govern.keys import KeyLimits, KeyRecord
from turnout.errors import ConflictError, NotFoundError, UsageError
from turnout.gateway.keys.desk import KeyDesk, new_key, state_of
from turnout.gateway.keys.ring import digest_of
from turnout.testing.books import MemoryKeys
from turnout.testing.clock import FrozenClock

CLOCK = FrozenClock()
WANTED = KeyRecord("ci", "web", ("default",), KeyLimits(), CLOCK.now(), "")


async def policies():
    """Return the policies there are."""
    return {"default", "agents"}


@pytest.fixture
def store():
    """Return a store without keys."""
    return MemoryKeys()


@pytest.fixture
def desk(store):
    """Return a desk over it."""
    return KeyDesk(store, FrozenClock(), policies=policies)


def test_keys_are_long_and_all_different():
    """And such that no shell, URL or header changes them."""
    keys = {new_key() for _ in range(1_000)}
    assert len(keys) == 1_000
    assert all(key.startswith("tk-") and len(key) == 46 for key in keys)
    assert all(set(key) <= set("-_") | set(map(chr, range(48, 123))) for key in keys)


async def test_only_the_hash_of_a_key_is_kept(desk, store):
    """With a hint by which people recognise it."""
    issued = await desk.create(WANTED)
    (entry,) = await store.all()
    assert entry.digest == digest_of(issued.key)
    assert issued.key not in repr(entry)
    assert issued.key not in repr(issued)
    first, _, last = entry.record.hint.partition("…")
    assert issued.key.startswith(first)
    assert issued.key.endswith(last)
    assert len(first) + len(last) < len(issued.key) / 4


async def test_whoever_serves_here_is_told_of_every_change(store):
    """So that it counts at once."""
    told = []

    async def changed():
        told.append(await store.revision())

    desk = KeyDesk(store, FrozenClock(), changed=changed)
    await desk.create(WANTED)
    await desk.update("ci", lambda record: replace(record, admin=True))
    await desk.update("ci", lambda record: record)
    await desk.revoke("ci")
    assert told == [1, 2, 3]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": ""}, "1 to 64 letters"),
        ({"name": "-x"}, "1 to 64 letters"),
        ({"name": "a b"}, "1 to 64 letters"),
        ({"name": "a" * 65}, "1 to 64 letters"),
        ({"name": "shared"}, "callers without a key"),
        ({"project": "a/b"}, "1 to 64 letters"),
        ({"policies": ()}, "at least one policy"),
        ({"policies": ("nope",)}, "no policy 'nope'.*agents, default"),
        ({"limits": KeyLimits(requests_per_minute=0)}, "`requests_per_minute`"),
        ({"limits": KeyLimits(concurrency=-1)}, "`concurrency`"),
        ({"limits": KeyLimits(spend_per_day=0)}, "`spend_per_day`"),
        ({"limits": KeyLimits(spend_per_day=10**16)}, "`spend_per_day`"),
        ({"expires_at": CLOCK.now()}, "in the past"),
    ],
)
async def test_what_a_key_cannot_be_is_refused(desk, store, change, said):
    """Before anything is kept."""
    with pytest.raises(UsageError, match=said):
        await desk.create(replace(WANTED, **change))
    assert await store.all() == ()


async def test_a_change_is_checked_like_a_new_key(desk):
    """And leaves the key as it was."""
    await desk.create(WANTED)
    with pytest.raises(UsageError, match="no policy 'nope'"):
        await desk.update("ci", lambda record: replace(record, policies=("nope",)))
    assert (await desk.get("ci")).policies == ("default",)


async def test_a_change_touches_neither_name_nor_birth(desk):
    """These are what the key is known by."""
    made = (await desk.create(WANTED)).record
    later = CLOCK.now() + timedelta(days=1)
    changed = await desk.update(
        "ci", lambda _: replace(WANTED, name="x", created_at=later, hint="h", project="p")
    )
    assert changed == replace(made, project="p")


async def test_a_name_is_given_once(desk):
    """Also after the key was revoked."""
    await desk.create(WANTED)
    await desk.revoke("ci")
    with pytest.raises(ConflictError):
        await desk.create(WANTED)


async def test_who_is_not_there_is_not_found(desk):
    """With where to look."""
    for ask in (desk.get("x"), desk.revoke("x"), desk.update("x", lambda record: record)):
        with pytest.raises(NotFoundError, match="turnout keys list"):
            await ask


async def test_a_revoked_key_is_not_changed(desk):
    """It could not be used again, and the record of it would be untrue."""
    await desk.create(WANTED)
    shut = await desk.revoke("ci")
    for change in ({"admin": True}, {"revoked_at": None}):
        with pytest.raises(ConflictError, match="was revoked"):
            await desk.update("ci", lambda record, change=change: replace(record, **change))
    assert await desk.get("ci") == shut


async def test_revoking_twice_keeps_the_first_moment(desk):
    """When it was shut is part of the history."""
    await desk.create(WANTED)
    first = await desk.revoke("ci")
    desk._clock.advance(60)
    assert await desk.revoke("ci") == first
    assert state_of(first, CLOCK.now()) == "revoked"


@pytest.mark.parametrize(("seconds", "state"), [(-1, "expired"), (0, "expired"), (1, "active")])
def test_a_key_expires_at_its_moment(seconds, state):
    """Not a second later."""
    expiring = replace(WANTED, expires_at=CLOCK.now() + timedelta(seconds=seconds))
    assert state_of(expiring, CLOCK.now()) == state
    assert state_of(WANTED, CLOCK.now()) == "active"
