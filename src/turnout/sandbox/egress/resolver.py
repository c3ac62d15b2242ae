"""Names to addresses."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Final, Protocol

from turnout.core.network.addresses import Address

__all__ = ["Resolver", "SystemResolver"]

_THREADS: Final = 8


class Resolver(Protocol):
    """Looks names up, on the host."""

    async def resolve(self, host: str, port: int) -> tuple[Address, ...]:
        """Return the addresses of a host, best first; `OSError` where there are none in time."""
        ...


class SystemResolver:
    """Asks the resolver of the system, in threads of its own.

    A lookup that nobody waits for any more still holds its thread: what a sandbox asks for must not
    hold those that the service needs.
    """

    def __init__(self, timeout: float = 5.0) -> None:
        self._timeout = timeout
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="turnout-resolver")

    async def resolve(self, host: str, port: int) -> tuple[Address, ...]:
        """Return the addresses of a host; `TimeoutError`, an `OSError`, where it takes too long."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self._timeout):
            return await loop.run_in_executor(self._threads, _lookup, host, port)


def _lookup(host: str, port: int) -> tuple[Address, ...]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    # A zone, as in `fe80::1%eth0`, is part of link-local addresses alone.
    texts = [str(sockaddr[0]).partition("%")[0] for _, _, _, _, sockaddr in found]
    return tuple(ip_address(text) for text in dict.fromkeys(texts))
