"""Connections from the host to what a sandbox asked for."""

import asyncio
import base64
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

import h11

from turnout.core.network.addresses import Address, admitted
from turnout.errors import ConfigError
from turnout.sandbox.base import HostRule
from turnout.sandbox.egress.resolver import Resolver
from turnout.sandbox.egress.wire.http import HttpPeer
from turnout.sandbox.egress.wire.refusal import RefusedError
from turnout.sandbox.egress.wire.streams import PIECE, TcpStream

__all__ = ["Dialer", "UpstreamProxy", "parse_proxy"]

_MOST_ADDRESSES = 4


@dataclass(frozen=True, slots=True)
class UpstreamProxy:
    """The HTTP proxy through which the host itself reaches the public network."""

    host: str
    port: int
    credentials: str = field(default="", repr=False)
    """`USER:PASSWORD`, or empty."""


def parse_proxy(url: str) -> UpstreamProxy:
    """Return the proxy that `http://[USER:PASSWORD@]HOST:PORT` names, else `ConfigError`."""
    try:
        parts = urlsplit(url)
        port = parts.port or 80
    except ValueError:
        parts, port = urlsplit(""), 0
    if parts.scheme != "http" or not parts.hostname or parts.path.strip("/"):
        raise ConfigError(
            "The proxy for sandboxes cannot be used.", mend="Write it as `http://HOST:PORT`."
        )
    credentials = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return UpstreamProxy(parts.hostname, port, credentials.removeprefix(":"))


@dataclass(frozen=True, slots=True)
class Dialer:
    """Connects to hosts that a rule admits.

    A name is looked up once for each connection and every address is checked; the connection goes
    to an address that passed, so that a second answer of the name's owner changes nothing. Behind
    an upstream proxy it is the proxy that looks public names up, and that has to check them.
    """

    resolver: Resolver
    proxy: UpstreamProxy | None = None
    connect_seconds: float = 10.0

    @asynccontextmanager
    async def connection(self, rule: HostRule, host: str, port: int) -> AsyncIterator[TcpStream]:
        """Connect to a host until the block ends; `RefusedError` where that cannot be done."""
        stream = await self._connect(rule, host, port)
        try:
            yield stream
        finally:
            stream.abort()
            await stream.closed()

    async def _connect(self, rule: HostRule, host: str, port: int) -> TcpStream:
        try:
            async with asyncio.timeout(self.connect_seconds):
                if self.proxy is not None and not rule.private:
                    return await self._through(self.proxy, host, port)
                return await self._first_that_answers(await self._lookup(rule, host, port), port)
        except TimeoutError:
            raise _unreachable(504, host, port, "it did not answer in time") from None
        except OSError as error:
            # The error's own text may name an address.
            why = "it refused the connection" if isinstance(error, ConnectionError) else "no route"
            raise _unreachable(502, host, port, why) from None

    async def _lookup(self, rule: HostRule, host: str, port: int) -> tuple[Address, ...]:
        try:
            found = await self.resolver.resolve(host, port)
        except TimeoutError:
            raise _unreachable(504, host, port, "its name was not resolved in time") from None
        except OSError:
            raise _unreachable(502, host, port, "its name does not resolve") from None
        usable = admitted(found, private=rule.private)
        if not usable:
            raise RefusedError(
                403,
                f"{host} is not reachable from this sandbox: its address is not public, "
                "so it has to be named under `private`",
            )
        return usable[:_MOST_ADDRESSES]

    async def _first_that_answers(self, addresses: tuple[Address, ...], port: int) -> TcpStream:
        failure = OSError()
        for address in addresses:
            try:
                async with asyncio.timeout(self.connect_seconds / len(addresses)):
                    return await _open(address, port)
            except OSError as error:
                failure = error
        raise failure

    async def _through(self, proxy: UpstreamProxy, host: str, port: int) -> TcpStream:
        opened = await asyncio.open_connection(proxy.host, proxy.port, limit=PIECE)
        stream = TcpStream(*opened)
        with contextlib.ExitStack() as undo:
            undo.callback(stream.abort)
            if not 200 <= (status := await _ask_proxy(stream, proxy, f"{host}:{port}")) < 300:
                raise _unreachable(502, host, port, f"the host's own proxy answered {status}")
            undo.pop_all()
        return stream


async def _open(address: Address, port: int) -> TcpStream:
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    with contextlib.ExitStack() as undo:
        undo.callback(sock.close)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, (str(address), port))
        undo.pop_all()
    return await TcpStream.over(sock)


async def _ask_proxy(stream: TcpStream, proxy: UpstreamProxy, target: str) -> int:
    """Return the status of the answer to a CONNECT; 0 where there was none."""
    headers = [("Host", target)]
    if proxy.credentials:
        token = base64.b64encode(proxy.credentials.encode()).decode()
        headers.append(("Proxy-Authorization", f"Basic {token}"))
    peer = HttpPeer(stream, h11.CLIENT)
    await peer.send(h11.Request(method="CONNECT", target=target, headers=headers))
    await peer.send(h11.EndOfMessage())
    try:
        while not isinstance(event := await peer.receive(), h11.Response):
            if isinstance(event, h11.ConnectionClosed):
                return 0
    except h11.RemoteProtocolError:
        return 0
    peer.finish()
    return event.status_code


def _unreachable(status: int, host: str, port: int, why: str) -> RefusedError:
    return RefusedError(status, f"{host}:{port} could not be reached: {why}", allowed=True)
