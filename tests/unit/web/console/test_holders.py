"""Whose key opens the console, with the very keys of the API."""

from dataclasses import replace

import pytest

from turnout.core.govern.keys import KeyLimits, KeyRecord
from turnout.errors import GatewayError
from turnout.gateway.keys.desk import KeyDesk
from turnout.gateway.keys.ring import KeyRing
from turnout.testing.books import MemoryKeys
from turnout.testing.clock import FrozenClock
from turnout.web.console.holders import KeyHolders

CLOCK = FrozenClock()
HOST = "127.0.0.1:8700"


async def test_a_key_is_known_again_until_it_is_shut() -> None:
    """By its digest alone, and with what it may do by then."""
    store = MemoryKeys()
    ring = KeyRing(store, CLOCK)
    desk = KeyDesk(store, CLOCK, changed=ring.refresh)
    wanted = KeyRecord("ann", "red", ("default",), KeyLimits(), CLOCK.now(), "", role="viewer")
    issued = await desk.create(wanted)
    holders = KeyHolders(ring, private=True)
    digest, caller = holders.enter(issued.key, HOST)
    assert (caller.key, caller.project, caller.role) == ("ann", "red", "viewer")
    assert issued.key not in digest
    await desk.update("ann", lambda record: replace(record, role="member"))
    assert holders.again(digest, HOST).role == "member"
    await desk.revoke("ann")
    with pytest.raises(GatewayError, match="revoked"):
        holders.again(digest, HOST)
    for wrong in ("other", ""):
        with pytest.raises(GatewayError):
            holders.enter(wrong, HOST)


async def test_the_shared_key_opens_it_too() -> None:
    """As itself, as long as it is the one."""
    ring = KeyRing(MemoryKeys(), CLOCK)
    digest, caller = KeyHolders(ring, "secret", private=True).enter("secret", HOST)
    assert caller.key == "shared"
    for now in (KeyHolders(ring, "another"), KeyHolders(ring, private=True)):
        with pytest.raises(GatewayError):
            now.again(digest, HOST)
    with pytest.raises(GatewayError):
        KeyHolders(ring, "secret", private=True).enter("", HOST)


@pytest.mark.parametrize("host", ["evil.example.org", "evil.example.org:8700", ""])
async def test_without_a_key_only_pages_of_this_machine_come_in(host: str) -> None:
    """A name of somebody else that leads here is not this machine; nor is anybody on a network."""
    ring = KeyRing(MemoryKeys(), CLOCK)
    open_here = KeyHolders(ring, private=True)
    assert open_here.keyless
    digest, caller = open_here.enter("", HOST)
    assert (digest, caller.key) == ("", "local")
    with pytest.raises(GatewayError):
        open_here.again(digest, host)
    with pytest.raises(GatewayError):
        KeyHolders(ring).enter("", HOST)
