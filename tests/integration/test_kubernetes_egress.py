"""What a pod reaches: the service's proxy, and through it what the rules admit."""

import asyncio
import socket
from collections.abc import AsyncIterator
from ipaddress import ip_address
from pathlib import Path

import pytest
from tests.clusters import Clustered, clustered, said

from turnout.core.network.addresses import Address
from turnout.errors import SandboxUnavailableError
from turnout.sandbox.base import Egress, HostRule
from turnout.sandbox.egress.gate import EgressServices
from turnout.sandbox.kubernetes.options import ProxyAddress

HOST = "packages.example"
FETCH = f"python3 -c \"import urllib.request as u; print(u.urlopen('http://{HOST}:%d/').read())\""


class Loopback:
    """A resolver for which every name is this machine."""

    async def resolve(self, host: str, port: int) -> tuple[Address, ...]:
        """Return the address of the loopback."""
        return (ip_address("127.0.0.1"),)


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """Serve one page on a port of the loopback."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\npage")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Clustered]:
    """Open a cluster whose service has one port for a proxy."""
    proxy = ProxyAddress("127.0.0.1", port=free_port(), ports=1, listen="127.0.0.1")
    services = EgressServices(resolver=Loopback())
    async with clustered(tmp_path, egress=services, proxy=proxy) as opened:
        yield opened


def to(port: int) -> Egress:
    """Return what lets a sandbox reach the page."""
    return Egress(rules=(HostRule(HOST, (port,), private=True),))


async def test_what_is_admitted_is_reached_and_recorded(here: Clustered, port: int) -> None:
    """By the service's proxy; the pod bears the label that the policy lets out."""
    sandbox = await here.start(egress=to(port))
    assert "page" in await said(sandbox, FETCH % port)
    (connection,) = sandbox.connections()
    assert (connection.host, connection.port, connection.allowed) == (HOST, port, True)
    (pod,) = here.pods()
    assert pod["metadata"]["labels"]["turnout/egress"] == "proxy"
    await sandbox.close()


async def test_what_is_not_admitted_is_refused(here: Clustered, port: int) -> None:
    """Another port of the host is another connection."""
    sandbox = await here.start(egress=to(port))
    assert "page" not in await said(sandbox, FETCH % (port + 1))
    assert [one.allowed for one in sandbox.connections()] == [False]
    await sandbox.close()


async def test_the_proxy_serves_nobody_without_the_token(here: Clustered, port: int) -> None:
    """Another pod that reaches its port gets nothing from it."""
    sandbox = await here.start(egress=to(port))
    address = await said(sandbox, "printf %s $HTTP_PROXY")
    bare = f"http://{address.partition('@')[2]}"
    text = await said(sandbox, f"export http_proxy={bare} HTTP_PROXY={bare}; {FETCH % port}")
    assert "407" in text
    assert "page" not in text
    await sandbox.close()


async def test_without_rules_there_is_no_way_out(here: Clustered, port: int) -> None:
    """Neither a proxy in the environment nor a network."""
    sandbox = await here.start()
    assert await said(sandbox, "env | grep -ci proxy") == "0\n"
    assert "page" not in await said(sandbox, FETCH % port)
    assert sandbox.connections() == ()
    await sandbox.close()


async def test_a_port_is_free_again_at_the_end(here: Clustered, port: int) -> None:
    """One port serves one sandbox after the other, and not two at once."""
    first = await here.start(egress=to(port))
    with pytest.raises(SandboxUnavailableError, match="All 1 ports of the proxy are taken"):
        await here.start(egress=to(port))
    await first.close()
    second = await here.start(egress=to(port))
    await second.close()
    assert here.pods() == []


async def test_rules_without_a_proxy_are_refused(tmp_path: Path, port: int) -> None:
    """A sandbox that could not reach what it was promised is not started."""
    async with clustered(tmp_path) as here:
        with pytest.raises(SandboxUnavailableError, match="do not know the service's proxy"):
            await here.start(egress=to(port))
        assert here.pods() == []
