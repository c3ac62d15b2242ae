"""The gate of one sandbox: the proxy through which all that it may reach is reached."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field

from turnout.errors import ConfigError, MissingExtraError, SandboxError
from turnout.sandbox.base import Connection, Egress
from turnout.sandbox.egress.dial import Dialer, parse_proxy
from turnout.sandbox.egress.ledger import Ledger
from turnout.sandbox.egress.resolver import Resolver, SystemResolver
from turnout.sandbox.egress.rules import check_rule, find_rule
from turnout.sandbox.egress.secret import place
from turnout.sandbox.egress.service import Authority, Bounds, Interception, Service
from turnout.sandbox.egress.trust import PROXY_INSIDE, ca_variables, proxy_variables, read_trust
from turnout.sandbox.egress.visit import Visit
from turnout.sandbox.egress.wire.streams import TcpStream

__all__ = ["EgressServices", "Gate", "MakeAuthority", "open_gate"]

_FAMILIES = (socket.AF_INET, socket.AF_INET6)
_BACKLOG = 512
_PAUSE_SECONDS = 0.2
"""Before connections are accepted again, once that failed for want of descriptors."""

MakeAuthority = Callable[[Sequence[str]], Authority]
"""Makes an authority that vouches for some hosts and no others."""


class Gate:
    """An HTTP proxy that lets pass what an `Egress` admits, and records what it was asked for."""

    def __init__(
        self,
        egress: Egress,
        *,
        resolver: Resolver,
        authority: Authority | None = None,
        trust: bytes = b"",
        upstream_proxy: str = "",
        token: str = "",
        bounds: Bounds | None = None,
    ) -> None:
        """Check all that `egress` says: `ConfigError` where something cannot be.

        `authority` is needed where secrets are bound and vouches for their hosts. `trust` holds the
        authorities that the sandbox trusts beside it, PEM. With a `token`, requests need it as
        their password for the proxy.
        """
        bounds = bounds or Bounds()
        self._egress = egress
        self._rules = tuple(map(check_rule, egress.rules))
        self._placed = tuple(map(place, egress.secrets))
        self._check_secrets()
        self._trust = trust
        self._authority = authority
        self._ledger = Ledger()
        proxy = parse_proxy(upstream_proxy) if upstream_proxy else None
        self._service = Service(
            self._rules,
            egress.setting,
            Dialer(resolver, proxy, bounds.connect_seconds),
            self._ledger,
            bounds,
            token,
            self._interception(),
        )
        self._slots = asyncio.Semaphore(bounds.connections)
        self._tasks: set[asyncio.Task[None]] = set()
        self._listeners: list[socket.socket] = []

    def _check_secrets(self) -> None:
        ports = {port for rule in self._rules for port in rule.ports}
        for secret in self._placed:
            if not any(find_rule(self._rules, secret.host, port) for port in ports):
                raise ConfigError(
                    f"{secret.variable} is bound to {secret.host}, which no rule admits.",
                    mend=f"Add the host to {self._egress.setting}.",
                )
        variables = [secret.variable for secret in self._placed]
        if len(set(variables)) < len(variables):
            raise ConfigError("Two secrets have the same variable.", mend="Rename one of them.")

    def _interception(self) -> Interception | None:
        if not self._placed:
            return None
        if self._authority is None:
            raise MissingExtraError(
                f"A secret is bound to {self._placed[0].host}, which takes certificates.",
                mend="Run `pip install 'turnout[secrets]'`.",
            )
        return Interception(self._authority, _client_context(self._trust), self._placed)

    @property
    def bundle(self) -> bytes:
        """The authorities that the sandbox trusts, PEM, for `BUNDLE_INSIDE`; empty if none are."""
        interception = self._service.interception
        if interception is None:
            return self._trust
        return b"%s\n%s" % (self._trust, interception.authority.certificate)

    def variables(self, proxy: str = PROXY_INSIDE) -> Mapping[str, str]:
        """Return what the environment of every command inside needs.

        The proxy at its URL inside, the bundle where there is one, the placeholders of secrets, and
        the variables of the `Egress`, which override the others.
        """
        found = dict(proxy_variables(proxy))
        if self.bundle:
            found |= ca_variables()
        found |= {secret.variable: secret.placeholder.decode() for secret in self._placed}
        return found | dict(self._egress.variables)

    async def serve(self, listener: socket.socket) -> None:
        """Begin to serve on a TCP socket, which is the gate's own from now on, and return.

        `SandboxError` where it is something else.
        """
        self._listeners.append(listener)
        if listener.family not in _FAMILIES or listener.type != socket.SOCK_STREAM:
            raise SandboxError("What the sandbox handed over is not a socket to listen on.")
        listener.setblocking(False)
        listener.listen(_BACKLOG)
        self._start(self._accept(listener))

    def connections(self) -> tuple[Connection, ...]:
        """Return what was asked for so far, oldest first; 10,000 at most."""
        return self._ledger.connections()

    async def close(self) -> None:
        """Break off all connections and leave nothing behind; may be called twice."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for listener in self._listeners:
            listener.close()

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _accept(self, listener: socket.socket) -> None:
        """Accept connections as long as there are slots; more wait in the kernel's queue."""
        while True:
            await self._slots.acquire()
            try:
                sock, _ = await asyncio.get_running_loop().sock_accept(listener)
            except OSError:
                self._slots.release()
                await asyncio.sleep(_PAUSE_SECONDS)
            else:
                self._receive(sock)

    def _receive(self, sock: socket.socket) -> None:
        visit = self._start(self._visit(sock))
        # A task that is cancelled before it began closes nothing itself.
        visit.add_done_callback(lambda _: sock.close())

    async def _visit(self, sock: socket.socket) -> None:
        try:
            with contextlib.suppress(OSError):
                stream = await TcpStream.over(sock)
                await Visit(self._service, stream).serve()
        finally:
            self._slots.release()


def _client_context(trust: bytes) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=trust.decode("ascii", "ignore") or None)
    except ssl.SSLError as error:
        raise ConfigError(
            f"The certificate authorities cannot be read: {error.reason}.",
            mend="Check the file of your own authorities.",
        ) from None
    context.set_alpn_protocols(["http/1.1"])
    return context


@dataclass(frozen=True, slots=True)
class EgressServices:
    """What a driver needs to open gates."""

    resolver: Resolver = field(default_factory=SystemResolver)
    make_authority: MakeAuthority | None = None
    """`authority.RunAuthority`, where the extra `secrets` is installed."""
    upstream_proxy: str = field(default="", repr=False)
    """`http://` URL of the proxy through which the host itself reaches public hosts, if any."""

    @property
    def secrets_fact(self) -> tuple[str, bool, str]:
        """Whether secrets can be bound, as a fact of `Capabilities`."""
        if self.make_authority is None:
            return ("secrets", False, "run `pip install 'turnout[secrets]'`")
        return ("secrets", True, "put in by the proxy, never inside")


def open_gate(services: EgressServices, egress: Egress, *, token: str = "") -> Gate | None:
    """Return the gate for an `Egress`; None where it admits nothing.

    With a `token` it serves only who has it, for a listener that others can reach.
    `ConfigError` where it says what cannot be, `MissingExtraError` where it binds secrets and there
    is nothing to make an authority.
    """
    if not egress.rules and not egress.secrets:
        return None
    hosts = sorted({place(secret).host for secret in egress.secrets})
    return Gate(
        egress,
        resolver=services.resolver,
        authority=services.make_authority(hosts) if services.make_authority and hosts else None,
        trust=read_trust(egress.ca_files),
        upstream_proxy=services.upstream_proxy,
        token=token,
    )
