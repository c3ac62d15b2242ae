"""What all connections of one gate share."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from turnout.sandbox.base import HostRule
from turnout.sandbox.egress.dial import Dialer
from turnout.sandbox.egress.ledger import Entry, Ledger, shown
from turnout.sandbox.egress.rules import canonical_host, find_rule, split_target
from turnout.sandbox.egress.secret import PlacedSecret
from turnout.sandbox.egress.wire.refusal import RefusedError
from turnout.sandbox.egress.wire.streams import Stream

__all__ = ["Authority", "Bounds", "Destination", "Interception", "Service"]

_USUAL_PORTS = (0, *HostRule("").ports)
"""Those that a rule without a port admits, and none."""


class Authority(Protocol):
    """Vouches for the proxy in front of hosts that secrets are bound to."""

    @property
    def certificate(self) -> bytes:
        """Its own certificate, PEM."""
        ...

    def context(self, host: str) -> ssl.SSLContext:
        """Return what a TLS server needs that answers for one of these hosts."""
        ...


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much a sandbox may ask of its gate at once, and how slowly."""

    connections: int = 64
    """More wait in the kernel's queue: each one costs the service two descriptors."""
    wait_seconds: float = 15.0
    """Until a connection's next request begins."""
    head_seconds: float = 10.0
    """For the head of a request, or the greeting of TLS."""
    connect_seconds: float = 10.0
    """Until a host answers, its name looked up."""
    idle_seconds: float = 300.0
    """Without a byte from or to a host; how long it goes on otherwise is not limited."""


@dataclass(frozen=True, slots=True)
class Interception:
    """What it takes to end TLS here and to begin it anew."""

    authority: Authority
    upstream: ssl.SSLContext
    placed: tuple[PlacedSecret, ...]


@dataclass(frozen=True, slots=True)
class Destination:
    """A host that the rules let pass, and the connection's place in the ledger."""

    host: str
    port: int
    rule: HostRule
    entry: Entry


@dataclass(frozen=True, slots=True)
class Service:
    """What all connections of one gate share."""

    rules: tuple[HostRule, ...]
    setting: str
    """Where the rules come from, for refusals."""
    dialer: Dialer
    ledger: Ledger
    bounds: Bounds
    token: str = ""
    """Password that each request has to show; empty where the listener is out of others' reach."""
    interception: Interception | None = None

    def admit(self, target: str, *, default_port: int | None = None) -> Destination:
        """Return where `HOST:PORT` leads; `RefusedError` where it leads nowhere; both on record."""
        host, port = target, 0
        try:
            host, port = split_target(target, default_port=default_port)
            host = canonical_host(host)
        except ValueError as error:
            raise self._refused(host, port, str(error)) from None
        if (rule := find_rule(self.rules, host, port)) is None:
            raise self._refused(host, port, f"add it to {self.setting}")
        return Destination(host, port, rule, self.ledger.admit(host, port))

    def _refused(self, host: str, port: int, why: str) -> RefusedError:
        name = shown(host) if port in _USUAL_PORTS else f"{shown(host)}:{port}"
        refused = RefusedError(403, f"{name} is not reachable from this sandbox: {why}")
        self.ledger.refuse(host, port, refused.text)
        return refused

    def interception_for(self, host: str) -> Interception | None:
        """Return what to put into requests to a host; None where no secret is bound to it."""
        if self.interception is None:
            return None
        bound = tuple(secret for secret in self.interception.placed if secret.host == host)
        return replace(self.interception, placed=bound) if bound else None

    @asynccontextmanager
    async def connection(self, destination: Destination) -> AsyncIterator[Stream]:
        """Connect until the block ends; `TimeoutError` once nothing was passed on for too long."""
        host, port, idle = destination.host, destination.port, self.bounds.idle_seconds
        async with (
            self.dialer.connection(destination.rule, host, port) as stream,
            asyncio.timeout(idle) as deadline,
        ):
            yield _Metered(stream, destination.entry, deadline, idle)


class _Metered(Stream):
    """Counts what passes, and puts the deadline off each time that something does."""

    def __init__(
        self, stream: Stream, entry: Entry, deadline: asyncio.Timeout, idle_seconds: float
    ) -> None:
        super().__init__()
        self._stream = stream
        self._entry = entry
        self._deadline = deadline
        self._idle_seconds = idle_seconds

    async def _receive(self) -> bytes:
        data = await self._stream.read()
        self._entry.received_bytes += len(data)
        self._progress()
        return data

    async def write(self, data: bytes) -> None:
        """Write all, no faster than the other side reads."""
        await self._stream.write(data)
        self._entry.sent_bytes += len(data)
        self._progress()

    def _progress(self) -> None:
        if not self._deadline.expired():
            self._deadline.reschedule(asyncio.get_running_loop().time() + self._idle_seconds)

    async def end(self) -> None:
        """Say that nothing more will be written."""
        await self._stream.end()

    def abort(self) -> None:
        """Break the connection at once."""
        self._stream.abort()

    async def closed(self) -> None:
        """Wait until nothing is left of it."""
        await self._stream.closed()
