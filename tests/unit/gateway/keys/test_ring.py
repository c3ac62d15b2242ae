"""Callers are known by their keys."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from turnout.core.govern.keys import KeyEntry, KeyLimits, KeyRecord
from turnout.errors import GatewayError, StoreError
from turnout.gateway.access import open_access, shared_key
from turnout.gateway.exchange import Caller
from turnout.gateway.keys.desk import new_key
from turnout.gateway.keys.ring import KeyRing, digest_of
from turnout.testing.books import MemoryKeys
from turnout.testing.clock import FrozenClock

CLOCK = FrozenClock()
RECORD = KeyRecord(
    name="ci",
    project="web",
    policies=("agents", "review"),
    limits=KeyLimits(concurrency=2),
    created_at=CLOCK.now(),
    hint="",
)


def bearer(key):
    """Return the headers of a request with that key."""
    return {"authorization": f"Bearer {key}", "host": "127.0.0.1:8700"}


async def ring_with(record=RECORD, **others):
    """Return a ring that holds one key, and the key."""
    store, key = MemoryKeys(), new_key()
    await store.add(KeyEntry(digest_of(key), record))
    ring = KeyRing(store, FrozenClock(), **others)
    await ring.refresh()
    return ring, key


async def test_work_that_names_a_key_is_told_how_to_make_one():
    """Nobody sends such a key, so there is nothing to send."""
    ring, _ = await ring_with()
    assert ring.named("ci").project == "web"
    with pytest.raises(GatewayError, match="keys create queue --role member"):
        ring.named("queue")
    ring, _ = await ring_with(replace(RECORD, revoked_at=CLOCK.now()))
    with pytest.raises(GatewayError, match=r"The key 'ci' was revoked.*keys create NAME"):
        ring.named("ci")


@pytest.mark.parametrize(
    "headers",
    [
        lambda key: {"authorization": f"Bearer {key}"},
        lambda key: {"authorization": f"bearer   {key} "},
        lambda key: {"x-api-key": key},
        lambda key: {"api-key": key},
    ],
)
async def test_a_key_tells_who_calls(headers):
    """By any of the headers that clients use."""
    ring, key = await ring_with()
    caller = ring.authenticate(headers(key))
    limits = KeyLimits(concurrency=2)
    assert caller == Caller("ci", "web", ("agents", "review"), limits=limits)
    assert ring.known


@pytest.mark.parametrize("sent", ["", "tk-wrong", "\udcff", "é" * 9999])
async def test_any_other_key_is_refused(sent):
    """401, without a word of what was sent."""
    ring, _ = await ring_with()
    with pytest.raises(GatewayError) as caught:
        ring.authenticate(bearer(sent))
    assert (caught.value.status, caught.value.code) == (401, "invalid_api_key")
    assert not sent or sent not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"revoked_at": CLOCK.now()}, "key_revoked"),
        ({"expires_at": CLOCK.now()}, "key_expired"),
        ({"expires_at": CLOCK.now() - timedelta(days=1)}, "key_expired"),
    ],
)
async def test_a_key_that_was_shut_is_refused(change, code):
    """401, with the reason, and not the key."""
    ring, key = await ring_with(replace(RECORD, **change))
    assert not ring.known
    with pytest.raises(GatewayError) as caught:
        ring.authenticate(bearer(key))
    assert (caught.value.status, caught.value.code) == (401, code)
    assert key not in f"{caught.value}{caught.value.param}{caught.value.mend}"


async def test_a_key_works_until_it_expires():
    """To the moment."""
    ring, key = await ring_with(replace(RECORD, expires_at=CLOCK.now() + timedelta(seconds=1)))
    assert ring.authenticate(bearer(key)).key == "ci"


async def test_changes_of_another_process_are_seen():
    """Without a restart: what was revoked there is refused here."""
    ring, key = await ring_with()
    store = ring._store
    async with ring:
        await store.put(replace(RECORD, revoked_at=CLOCK.now()))
        assert await _is_refused_within_a_second(ring, key)


async def test_a_store_that_cannot_be_read_leaves_the_view_as_it_was():
    """And it is read again once it can."""

    class Broken(MemoryKeys):
        broken = False

        async def revision(self):
            if self.broken:
                raise StoreError("The disk is gone.")
            return await super().revision()

    store, key = Broken(), new_key()
    await store.add(KeyEntry(digest_of(key), RECORD))
    async with KeyRing(store, FrozenClock()) as ring:
        store.broken = True
        await asyncio.sleep(0.6)
        assert ring.authenticate(bearer(key)).key == "ci"
        store.broken = False
        await store.put(replace(RECORD, revoked_at=CLOCK.now()))
        assert await _is_refused_within_a_second(ring, key)


async def test_a_shared_key_opens_beside_our_own():
    """The one that the gateway was started with."""
    ring, key = await ring_with(shared=shared_key("team"))
    assert ring.authenticate(bearer("team")).key == "shared"
    assert ring.authenticate(bearer(key)).key == "ci"
    with pytest.raises(GatewayError, match="missing or wrong"):
        ring.authenticate(bearer("other"))


async def test_whoever_serves_may_do_everything_with_runs_and_a_key_what_its_role_says():
    """A key that was made before there were roles asks models."""
    ring, key = await ring_with(shared=shared_key("team"))
    assert ring.authenticate(bearer("team")).role == "approver"
    assert ring.authenticate(bearer(key)).role == "models"


async def test_without_any_key_programs_of_this_machine_may_call():
    """The first key that is made shuts that door, even once it is revoked."""
    store = MemoryKeys()
    ring = KeyRing(store, FrozenClock(), keyless=open_access())
    await ring.refresh()
    assert ring.authenticate({"host": "127.0.0.1:8700"}).key == "local"
    await store.add(KeyEntry(digest_of(new_key()), replace(RECORD, revoked_at=CLOCK.now())))
    await ring.refresh()
    with pytest.raises(GatewayError, match="missing or wrong"):
        ring.authenticate({"host": "127.0.0.1:8700"})


async def _is_refused_within_a_second(ring, key):
    for _ in range(100):
        try:
            ring.authenticate(bearer(key))
        except GatewayError as error:
            return error.code == "key_revoked"
        await asyncio.sleep(0.01)
    return False
