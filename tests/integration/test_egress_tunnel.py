"""TLS through the gate of a sandbox."""

import asyncio
import ssl
from itertools import pairwise

import pytest
from tests.egress import Certifier, FixedResolver, Proxy, Site, local, proxy, server

from turnout.sandbox.base import HostRule
from turnout.sandbox.egress.wire.hello import UNRECOGNIZED_NAME

WORLD = Certifier()
PLAIN = b"GET / HTTP/1.1\r\nHost: site.test\r\n\r\n"


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Give back what comes, until it ends."""
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


def greeting(name: str | None) -> bytes:
    """Return what a TLS client sends first."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


async def broke(reader: asyncio.StreamReader) -> bool:
    """Read until the connection is gone."""
    try:
        while await reader.read(1 << 16):
            continue
    except ConnectionError:
        pass
    return True


async def through(inside: Proxy, target: str, *pieces: bytes) -> bytes:
    """Return what comes back through a tunnel, each piece sent on its own."""
    head, reader, writer = await inside.connect(target)
    assert head.startswith(b"HTTP/1.1 200 ")
    try:
        async with asyncio.timeout(20):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            writer.write_eof()
            return await reader.read()
    finally:
        writer.transport.abort()


async def test_a_tunnel_is_the_hosts_own_tls() -> None:
    """The certificate that the client sees is that of the host; bytes are counted."""
    site = Site()
    async with server(site, WORLD.server("site.test")) as port, proxy(local(port)) as inside:
        answer = await inside.get_tls(f"site.test:{port}", WORLD.pem)
        assert answer.endswith(b"ok")
        assert site.requests
        only = inside.only
        assert (only.host, only.port, only.allowed) == ("site.test", port, True)
        assert only.sent_bytes > len(site.requests[0])
        assert only.received_bytes > len(answer)


async def test_the_end_of_one_direction_is_not_that_of_the_other() -> None:
    """A client may have sent all and still listen."""
    async with server(echo) as port, proxy(local(port)) as inside:
        sent = greeting("site.test")
        assert await through(inside, f"site.test:{port}", sent, b"more") == sent + b"more"
        only = inside.only
        assert (only.sent_bytes, only.received_bytes, only.reason) == (len(sent) + 4,) * 2 + ("",)


@pytest.mark.parametrize("cuts", [(1,), (5, 6, 9), (60,), tuple(range(1, 200, 7))])
async def test_a_greeting_may_come_in_pieces(cuts: tuple[int, ...]) -> None:
    """It reaches the host whole."""
    sent = greeting("site.test")
    edges = (0, *cuts, len(sent))
    pieces = [sent[start:end] for start, end in pairwise(edges)]
    async with server(echo) as port, proxy(local(port)) as inside:
        assert await through(inside, f"site.test:{port}", *pieces) == sent


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (greeting("evil.test"), "its TLS greeting names evil.test"),
        (greeting("a.site.test"), "its TLS greeting names a.site.test"),
        (greeting("site.test").replace(b"site.test", b"site.tes."), "names site.tes."),
        (greeting("site.test").replace(b"site.test", b"site.te\x00t"), "names site.te?t"),
        (greeting(None), "its TLS greeting names no host"),
        (greeting("site.test")[:-1], "it ended before its TLS greeting did"),
        (b"", "it ended before its TLS greeting did"),
        (PLAIN, "it does not speak TLS"),
        (b"SSH-2.0-client\r\n", "it does not speak TLS"),
        (b"\x16\x03\x01\x40\x00\x01\x00\xff\xff", "its TLS greeting is too long"),
        (b"CONNECT evil.test:443 HTTP/1.1\r\n\r\n", "it does not speak TLS"),
    ],
)
async def test_a_tunnel_is_for_tls_with_the_host_that_was_asked_for(sent: bytes, why: str) -> None:
    """The host sees nothing of anything else; the client is told by an alert."""
    seen: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.read())

    async with server(listen) as port, proxy(local(port)) as inside:
        assert await through(inside, f"site.test:{port}", sent) == UNRECOGNIZED_NAME
        assert not inside.only.allowed
        assert inside.only.reason.endswith(why)
    assert b"".join(seen) == b""


async def test_a_name_in_another_case_is_the_same() -> None:
    """As it is for the rules."""
    sent = greeting("SITE.test")
    async with server(echo) as port, proxy(local(port)) as inside:
        assert await through(inside, f"Site.Test.:{port}", sent) == sent
        assert inside.only.host == "site.test"


@pytest.mark.parametrize(
    ("target", "status", "text"),
    [
        ("other.test:443", 403, "other.test is not reachable from this sandbox: add it to"),
        ("site.test:22", 403, "site.test:22 is not reachable from this sandbox: add it to"),
        ("127.0.0.1:443", 403, "it is an address: use the name of the host"),
        ("2130706433:443", 403, "it is an address: use the name of the host"),
        ("[::1]:443", 403, "it is an address: use the name of the host"),
        ("::1:443", 403, "it is an address: use the name of the host"),
        ("site.test", 403, "it names no port"),
        ("site.test:0", 403, "its port is no number"),
        ("site.test:https", 403, "its port is no number"),
        ("me@site.test:443", 403, "it is no host name"),
        ("https://site.test:443", 403, "it is an address"),
        ("unknown.test:443", 502, "unknown.test:443 could not be reached: its name does not resol"),
        ("inner.test:443", 403, "its address is not public"),
    ],
)
async def test_a_tunnel_that_leads_nowhere_says_why(target: str, status: int, text: str) -> None:
    """In the first line of the answer, which is all that most clients show."""
    rules = (local(443), local(443, host="unknown.test"), HostRule("inner.test"))
    resolver = FixedResolver({"unknown.test": "", "inner.test": "10.0.0.1"})
    async with proxy(*rules, resolver=resolver) as inside:
        head, _, writer = await inside.connect(target)
        writer.transport.abort()
        first = head.partition(b"\r\n")[0].decode()
        assert first.startswith(f"HTTP/1.1 {status} ")
        assert text in first
        assert inside.only.reason == first.split(" ", 2)[2]


async def test_what_a_client_sends_before_it_may_is_not_lost() -> None:
    """Some send their greeting without waiting for the answer."""
    sent = greeting("site.test")
    async with server(echo) as port, proxy(local(port)) as inside:
        reader, writer = await inside.open()
        writer.write(f"CONNECT site.test:{port} HTTP/1.1\r\nHost: a\r\n\r\n".encode() + sent)
        writer.write_eof()
        answer = await reader.read()
        writer.transport.abort()
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert answer.endswith(sent)


@pytest.mark.parametrize("leaver", ["client", "host"])
async def test_a_tunnel_that_one_side_breaks_is_gone(leaver: str) -> None:
    """The other side is told, whatever was under way."""
    here, there = asyncio.Event(), asyncio.Event()

    async def host(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        here.set()
        if leaver == "client":
            assert await broke(reader)
            there.set()

    async with server(host) as port, proxy(local(port)) as inside:
        head, reader, writer = await inside.connect(f"site.test:{port}")
        assert head.startswith(b"HTTP/1.1 200 ")
        writer.write(greeting("site.test"))
        async with asyncio.timeout(20):
            await here.wait()
            if leaver == "client":
                writer.transport.abort()
                await there.wait()
            else:
                assert await broke(reader)
                writer.transport.abort()


async def test_public_hosts_are_reached_through_the_proxy_of_the_machine() -> None:
    """It looks their names up; hosts of one's own are reached directly."""
    site, resolver = Site(), FixedResolver()
    tls = WORLD.server("public.test", "own.test")
    async with (
        server(site, tls) as port,
        proxy(local(port, host="public.test"), token="pass word") as machine,
        proxy(
            HostRule("public.test", (port,)),
            local(port, host="own.test"),
            HostRule("other.test"),
            resolver=resolver,
            upstream=f"http://user:pass%20word@127.0.0.1:{machine.port}",
        ) as inside,
    ):
        for name in ("public.test", "own.test"):
            assert (await inside.get_tls(f"{name}:{port}", WORLD.pem)).endswith(b"ok")
        head, _, writer = await inside.connect("other.test:443")
        writer.transport.abort()
        assert head.startswith(b"HTTP/1.1 502 other.test:443 could not be reached: the host's own")
        assert resolver.asked == ["own.test"]
        asked = [(each.host, each.allowed) for each in machine.gate.connections()]
        assert asked == [("public.test", True), ("other.test", False)]


async def test_a_proxy_of_the_machine_that_is_none_is_a_bad_gateway() -> None:
    """It may be down, or something else."""
    async with (
        server(Site(b"SSH-2.0-server\r\n\r\n")) as port,
        proxy(HostRule("public.test"), upstream=f"http://127.0.0.1:{port}") as inside,
    ):
        head, _, writer = await inside.connect("public.test:443")
        writer.transport.abort()
        assert head.startswith(b"HTTP/1.1 502 ")


async def test_the_client_checks_the_certificate_itself() -> None:
    """The gate cannot put itself between where no secret is bound."""
    async with server(Site(), WORLD.server("site.test")) as port, proxy(local(port)) as inside:
        with pytest.raises(ssl.SSLCertVerificationError):
            await inside.tls(f"site.test:{port}", Certifier().pem)
