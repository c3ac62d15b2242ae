"""The service's proxy as pods reach it: a port of the service for each sandbox."""

import asyncio
import socket
from collections.abc import Mapping
from secrets import token_urlsafe

from turnout.errors import SandboxUnavailableError
from turnout.sandbox.base import Connection, Egress
from turnout.sandbox.egress.gate import EgressServices, Gate, open_gate
from turnout.sandbox.kubernetes.options import ProxyAddress

__all__ = ["Door", "PodGate"]


class PodGate:
    """The gate of one sandbox, with the address under which its pod knows it."""

    def __init__(self, gate: Gate, url: str) -> None:
        self._gate = gate
        self._url = url

    @property
    def bundle(self) -> bytes:
        """The certificate authorities that are handed in, PEM."""
        return self._gate.bundle

    def variables(self) -> Mapping[str, str]:
        """Return the environment that every command needs."""
        return self._gate.variables(self._url)

    def connections(self) -> tuple[Connection, ...]:
        """Return what was asked for so far."""
        return self._gate.connections()

    async def close(self) -> None:
        """Break off all connections."""
        await self._gate.close()


class Door:
    """Opens gates on the ports that the network policy lets pods reach."""

    def __init__(self, address: ProxyAddress | None, services: EgressServices) -> None:
        self._address = address
        self._services = services

    async def open(self, egress: Egress) -> PodGate | None:
        """Return a gate that serves; None where `egress` admits nothing.

        Whoever knows the token may use it: other pods can reach the port as well.
        """
        token = token_urlsafe(24)
        gate = open_gate(self._services, egress, token=token)
        if gate is None:
            return None
        if self._address is None:
            raise SandboxUnavailableError(
                "Pods do not know the service's proxy, through which they reach anything.",
                mend="Let the driver have a proxy: `proxy = true` under `[sandbox.kubernetes]`.",
            )
        host = self._address.host or await _own_address()
        listener = _listen(self._address)
        await gate.serve(listener)
        port = listener.getsockname()[1]
        return PodGate(gate, f"http://turnout:{token}@{host}:{port}")


async def _own_address() -> str:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM)
    address = str(found[0][4][0])
    return f"[{address}]" if ":" in address else address


def _listen(address: ProxyAddress) -> socket.socket:
    """Return a socket on the first port that is free."""
    family = socket.AF_INET6 if ":" in address.listen else socket.AF_INET
    for port in range(address.port, address.port + address.ports):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((address.listen, port))
            listener.listen()
            return listener
        except OSError:
            listener.close()
    raise SandboxUnavailableError(
        f"All {address.ports} ports of the proxy are taken.",
        mend="Run fewer sandboxes at once, or give it more here and in the network policies.",
    )
