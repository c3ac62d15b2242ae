"""Which addresses may be connected to where others name the host."""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

__all__ = ["Address", "admitted"]

Address = IPv4Address | IPv6Address

_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
_TRANSLATED: Final = IPv6Network("64:ff9b::/96")
_COMPATIBLE: Final = IPv6Network("::/96")
_NOBODY: Final = IPv4Network("240.0.0.0/4")
_METADATA: Final = frozenset(
    map(ip_address, ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254"))
)
"""Where clouds hand out credentials of the machine, beside the link-local ones."""


def admitted(addresses: Iterable[Address], *, private: bool) -> tuple[Address, ...]:
    """Return the addresses that may be connected to.

    Those that are public; with `private` also those of networks that are not, and loopback. Never
    link-local ones or others where a cloud hands out credentials, and never those of no one host.
    """
    return tuple(address for address in addresses if _may_reach(address, private=private))


def _may_reach(address: Address, *, private: bool) -> bool:
    inner = _embedded(address)
    if inner is not None:
        return _may_reach(inner, private=private)
    if address in _METADATA or address.is_link_local or address.is_multicast:
        return False
    if address.is_unspecified or address in _NOBODY:
        return False
    if private:
        return True
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return False
    return address.is_global


def _embedded(address: Address) -> IPv4Address | None:
    """Return the IPv4 address that packets to an IPv6 one end up at, where it says so."""
    if isinstance(address, IPv4Address):
        return None
    if address.ipv4_mapped or address.sixtofour:
        return address.ipv4_mapped or address.sixtofour
    translated = address in _TRANSLATED or (address in _COMPATIBLE and int(address) > 0xFFFF)
    return IPv4Address(int(address) & 0xFFFF_FFFF) if translated else None
