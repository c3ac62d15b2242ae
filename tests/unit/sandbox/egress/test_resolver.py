"""Which addresses a name may lead to."""

from ipaddress import ip_address

import pytest

from turnout.core.network.addresses import admitted
from turnout.sandbox.egress.resolver import SystemResolver

PUBLIC = ["1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1", "2002:101:101::", "64:ff9b::101:101"]
PRIVATE = [
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "127.0.0.1",
    "100.64.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "::1",
    "fd00::1",
    "fec0::1",
    "2001:db8::1",
    "2001::1",
    "::ffff:10.0.0.1",
    "::10.0.0.1",
    "2002:a00:1::",
    "64:ff9b::a00:1",
    "64:ff9b:1::a00:1",
    "4000::1",
]
NEVER = [
    "169.254.169.254",
    "169.254.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "fd00:ec2::254",
    "fe80::1",
    "0.0.0.0",
    "::",
    "224.0.0.1",
    "ff02::1",
    "255.255.255.255",
    "240.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0.0.0.0",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::",
    "::169.254.169.254",
]


def admits(text: str, *, private: bool) -> bool:
    """Whether an address may be connected to."""
    return bool(admitted([ip_address(text)], private=private))


@pytest.mark.parametrize("text", PUBLIC)
def test_a_public_address_is_admitted(text: str) -> None:
    """In each of its forms."""
    assert admits(text, private=False)


@pytest.mark.parametrize("text", PRIVATE)
def test_a_private_address_needs_the_operator(text: str) -> None:
    """Also where an IPv6 address only carries it."""
    assert not admits(text, private=False)
    assert admits(text, private=True)


@pytest.mark.parametrize("text", NEVER)
def test_some_addresses_are_never_admitted(text: str) -> None:
    """Where machines get credentials, and where no one host is."""
    assert not admits(text, private=False)
    assert not admits(text, private=True)


def test_each_answer_is_looked_at() -> None:
    """A mixed answer is used as far as it is allowed, in its order."""
    mixed = [ip_address(text) for text in ("10.0.0.1", "1.1.1.1", "::1", "8.8.8.8")]
    assert [str(each) for each in admitted(mixed, private=False)] == ["1.1.1.1", "8.8.8.8"]


async def test_the_system_knows_this_machine() -> None:
    """Each address once."""
    found = await SystemResolver().resolve("localhost", 80)
    assert found
    assert len(set(found)) == len(found)
    assert all(address.is_loopback for address in found)


async def test_a_lookup_ends_in_time() -> None:
    """Whatever the thread that does it is waiting for."""
    with pytest.raises(TimeoutError):
        await SystemResolver(timeout=0).resolve("localhost", 80)
