"""Wrong keys at the sign-in: so many from one address, then one every few seconds."""

import ipaddress
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request

from turnout.core.clock import Clock
from turnout.errors import GatewayError

__all__ = ["Tries", "address_of"]

_AT_ONCE: Final = 10
"""Wrong keys that an address may try one after another."""
_SECONDS: Final = 6.0
"""After which it may try one more."""
_MOST_ADDRESSES: Final = 10_000
_MOST_TOLD: Final = 60
"""Lines that go on record within a minute, whoever tries."""


@dataclass(slots=True)
class _Tried:
    wrong: float
    """Wrong keys that count yet."""
    at: float
    """When that was so, of a clock that only goes on."""
    ever: int = 0
    """Wrong keys since the address was first seen."""


class Tries:
    """Counts wrong keys by address, of the addresses that were seen last."""

    def __init__(self, clock: Clock, *, most_addresses: int = _MOST_ADDRESSES) -> None:
        self._clock = clock
        self._most = most_addresses
        self._tried: OrderedDict[str, _Tried] = OrderedDict()
        self._told: deque[float] = deque(maxlen=_MOST_TOLD)

    def check(self, address: str) -> None:
        """Refuse (`GatewayError`, 429) an address that has tried too many, whatever its key."""
        tried = self._tried.get(_group_of(address))
        if tried is None:
            return
        over = self._now(tried) - _AT_ONCE + 1
        if over <= 0:
            return
        seconds = int(over * _SECONDS) + 1
        raise GatewayError(
            f"Too many wrong keys came from your address. Try again in {seconds} s.",
            status=429,
            code="too_many_tries",
            mend="Whoever is signed in stays so.",
            retry_after=seconds,
        )

    def wrong(self, address: str) -> int:
        """Count a wrong key; returns how many there were where that is to go on record, else 0.

        The first is, the tenth, the hundredth and so on, but not more than sixty a minute of all.
        """
        group, now = _group_of(address), self._clock.monotonic()
        tried = self._tried.setdefault(group, _Tried(0.0, now))
        self._tried.move_to_end(group)
        tried.wrong, tried.at, tried.ever = self._now(tried) + 1, now, tried.ever + 1
        while len(self._tried) > self._most:
            self._tried.popitem(last=False)
        full = len(self._told) == _MOST_TOLD and self._told[0] > now - 60
        if full or set(str(tried.ever)[1:]) - {"0"} or not str(tried.ever).startswith("1"):
            return 0
        self._told.append(now)
        return tried.ever

    def _now(self, tried: _Tried) -> float:
        return max(0.0, tried.wrong - (self._clock.monotonic() - tried.at) / _SECONDS)


def address_of(request: Request) -> str:
    """Return where a request comes from; a proxy of this machine is believed what it says last."""
    peer = request.client.host if request.client else ""
    said = request.headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
    return said if said and _is_here(peer) else peer


def _is_here(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _group_of(address: str) -> str:
    """Return what addresses count as one: of IPv6 the 64 bits that one holder is given."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:100]
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False))
