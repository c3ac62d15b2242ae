"""Secrets that the gate puts in, and takes out again."""

import asyncio
import base64
import gc
import logging
import ssl

import pytest
from tests.egress import OK, Certifier, Proxy, Site, local, proxy, server

from turnout.sandbox.base import BoundSecret

WORLD = Certifier()
TLS = WORLD.server("api.test", "b.test", "other.test")
VALUE = "the-value-itself"
OTHER = "another-value!"


def secret(host: str = "api.test", variable: str = "TOKEN", value: str = VALUE) -> BoundSecret:
    """Return a secret bound to a host."""
    return BoundSecret(variable, host, value)


def holder(inside: Proxy, variable: str = "TOKEN") -> str:
    """Return the placeholder that programs inside see."""
    return inside.gate.variables()[variable]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer with all that was asked, in a header field and in the body."""
    asked = await reader.readuntil(b"\r\n\r\n")
    field = next(line for line in asked.split(b"\r\n") if line.lower().startswith(b"authorization"))
    writer.write(b"HTTP/1.1 200 OK\r\nX-Echo: %s\r\n" % field)
    writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(asked), asked))
    await writer.drain()


async def test_a_secret_is_put_in_for_its_host() -> None:
    """Inside nobody sees it; the host does, and the record says which one it was."""
    site = Site()
    async with (
        server(site, TLS) as port,
        proxy(local(port, host="api.test"), secrets=(secret(),), trust=WORLD.pem) as inside,
    ):
        field = f"Authorization: Bearer {holder(inside)}"
        answer = await inside.get_tls(f"api.test:{port}", inside.gate.bundle, field, path="/a?b")
        assert answer.endswith(b"2\r\nok\r\n0\r\n\r\n")
        assert site.requests[0].startswith(b"GET /a?b HTTP/1.1\r\nHost: api.test:")
        assert f"Authorization: Bearer {VALUE}\r\n".encode() in site.requests[0]
        assert inside.only.secrets == ("TOKEN",)
        assert VALUE not in repr(inside.gate.connections())
        assert inside.only.sent_bytes > len(site.requests[0])


async def test_a_secret_is_put_into_the_password_of_a_url() -> None:
    """As git and pip send it."""
    site = Site()
    async with (
        server(site, TLS) as port,
        proxy(local(port, host="api.test"), secrets=(secret(),), trust=WORLD.pem) as inside,
    ):
        asked = base64.b64encode(f"me:{holder(inside)}".encode()).decode()
        field = f"Authorization: Basic {asked}"
        await inside.get_tls(f"api.test:{port}", inside.gate.bundle, field)
        sent = base64.b64encode(f"me:{VALUE}".encode())
        assert b"Authorization: Basic " + sent in site.requests[0]


async def test_a_secret_is_put_in_for_no_other_host() -> None:
    """Neither one without secrets, nor one with others, whatever a client sends."""
    site = Site()
    secrets = (secret(), secret("b.test", "B", OTHER))
    async with server(site, TLS) as port:
        rules = [local(port, host=host) for host in ("api.test", "b.test", "other.test")]
        async with proxy(*rules, secrets=secrets, trust=WORLD.pem) as inside:
            field = f"Authorization: Bearer {holder(inside)}"
            for host in ("b.test", "other.test"):
                trust = inside.gate.bundle
                assert b"200 OK" in await inside.get_tls(f"{host}:{port}", trust, field)
            assert [each.secrets for each in inside.gate.connections()] == [(), ()]
    assert len(site.requests) == 2
    assert VALUE.encode() not in b"".join(site.requests)
    assert OTHER.encode() not in b"".join(site.requests)


async def test_a_secret_is_not_put_into_bodies_or_urls() -> None:
    """There it could be stored, logged and shown."""
    site = Site()
    async with (
        server(site, TLS) as port,
        proxy(local(port, host="api.test"), secrets=(secret(),), trust=WORLD.pem) as inside,
    ):
        mark = holder(inside)
        reader, writer = await inside.tls(f"api.test:{port}", inside.gate.bundle)
        writer.write(f"POST /?{mark} HTTP/1.1\r\nHost: api.test:{port}\r\n".encode())
        writer.write(f"Connection: close\r\nContent-Length: {len(mark)}\r\n\r\n{mark}".encode())
        assert b"200 OK" in await reader.read()
        writer.transport.abort()
        assert site.requests[0].count(mark.encode()) == 2
        assert inside.only.secrets == ()


async def test_a_host_with_a_secret_is_not_reached_without_tls() -> None:
    """What knows the secret could show it there."""
    site = Site()
    async with server(site) as port:
        rule = local(port, host="api.test")
        async with proxy(rule, secrets=(secret(),), trust=WORLD.pem) as inside:
            answer = await inside.get(f"http://api.test:{port}/")
            assert answer.startswith(b"HTTP/1.1 403 api.test is reachable by https:// alone")
            assert not inside.only.allowed
    assert site.requests == []


async def test_an_echo_is_taken_out() -> None:
    """Of header fields and of the body, as value and as credentials; the client sees its own."""
    async with (
        server(echo, TLS) as port,
        proxy(local(port, host="api.test"), secrets=(secret(),), trust=WORLD.pem) as inside,
    ):
        asked = base64.b64encode(f"me:{holder(inside)}".encode()).decode()
        fields = (f"X-Plain: {holder(inside)}", f"Authorization: Basic {asked}")
        answer = await inside.get_tls(f"api.test:{port}", inside.gate.bundle, *fields)
        assert answer.count(asked.encode()) == 2
        assert answer.count(f"X-Plain: {holder(inside)}".encode()) == 1
        assert VALUE.encode() not in answer
        assert base64.b64encode(f"me:{VALUE}".encode()) not in answer


@pytest.mark.parametrize("size", [1, 3, 7])
async def test_an_echo_in_pieces_is_taken_out(size: int) -> None:
    """However the host cuts its answer."""

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        text = f"a{VALUE}b{VALUE[:-1]}c{VALUE}".encode()
        for start in range(0, len(text), size):
            piece = text[start : start + size]
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    async with (
        server(drip, TLS) as port,
        proxy(local(port, host="api.test"), secrets=(secret(),), trust=WORLD.pem) as inside,
    ):
        answer = await inside.get_tls(f"api.test:{port}", inside.gate.bundle)
        assert VALUE.encode() not in answer
        body = b"".join(answer.partition(b"\r\n\r\n")[2].split(b"\r\n")[1::2])
        assert body == f"a{holder(inside)}b{VALUE[:-1]}c{holder(inside)}".encode()


async def test_events_are_not_held_back() -> None:
    """A stream shows each as soon as it is there."""
    seen = asyncio.Event()

    async def stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\ndata: 1\n\n")
        await writer.drain()
        await seen.wait()
        writer.write(b"data: 2\n\n")

    async with (
        server(stream, TLS) as port,
        proxy(local(port, host="api.test"), secrets=(secret(),), trust=WORLD.pem) as inside,
        asyncio.timeout(20),
    ):
        reader, writer = await inside.tls(f"api.test:{port}", inside.gate.bundle)
        writer.write(f"GET / HTTP/1.1\r\nHost: api.test:{port}\r\n\r\n".encode())
        await reader.readuntil(b"data: 1\n\n")
        seen.set()
        await reader.readuntil(b"data: 2\n\n")
        writer.transport.abort()


async def test_an_answer_has_to_come_uncompressed_and_whole() -> None:
    """It is asked for so, and is refused otherwise."""
    site = Site(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok")
    async with (
        server(site, TLS) as port,
        proxy(local(port, host="api.test"), secrets=(secret(),), trust=WORLD.pem) as inside,
    ):
        fields = ("Accept-Encoding: gzip", "Range: bytes=0-3", f"X-Key: {holder(inside)}")
        answer = await inside.get_tls(f"api.test:{port}", inside.gate.bundle, *fields)
        assert answer.startswith(b"HTTP/1.1 502 The host's answer is compressed")
        assert site.requests[0].lower().count(b"accept-encoding: identity") == 1
        assert b"gzip" not in site.requests[0]
        assert b"Range" not in site.requests[0]


async def test_requests_on_one_connection_have_secrets_put_in_each() -> None:
    """The connection to the client is kept, those to the host are not."""
    site = Site()
    async with (
        server(site, TLS) as port,
        proxy(local(port, host="api.test"), secrets=(secret(),), trust=WORLD.pem) as inside,
    ):
        reader, writer = await inside.tls(f"api.test:{port}", inside.gate.bundle)
        for number in range(3):
            writer.write(f"GET /{number} HTTP/1.1\r\nHost: api.test:{port}\r\n".encode())
            writer.write(f"X-Key: {holder(inside)}\r\n\r\n".encode())
            async with asyncio.timeout(20):
                assert (await reader.readuntil(b"0\r\n\r\n")).endswith(b"ok\r\n0\r\n\r\n")
        writer.transport.abort()
        assert [f"/{number}".encode() in site.requests[number] for number in range(3)] == [True] * 3
        assert b"".join(site.requests).count(VALUE.encode()) == 3


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("GET / HTTP/1.1\r\nHost: evil.test", 400),
        ("GET / HTTP/1.1\r\nHost: api.test", 400),
        ("GET https://evil.test/ HTTP/1.1\r\nHost: api.test:{port}", 400),
        ("CONNECT evil.test:443 HTTP/1.1\r\nHost: api.test:{port}", 400),
        ("TRACE / HTTP/1.1\r\nHost: api.test:{port}", 405),
        ("GET / HTTP/1.1\r\nHost: api.test:{port}\r\nUpgrade: websocket", 501),
        (
            "POST / HTTP/1.1\r\nHost: api.test:{port}\r\nContent-Length: 1\r\nTransfer-Encoding: x",
            501,
        ),
        ("GET / HTTP/1.1\r\nHost: api.test:{port}\r\nX: a\r\n b", 400),
    ],
)
async def test_a_request_that_goes_astray_is_refused(head: str, status: int) -> None:
    """Within TLS the same is refused as without."""
    site = Site()
    async with (
        server(site, TLS) as port,
        proxy(local(port, host="api.test"), secrets=(secret(),), trust=WORLD.pem) as inside,
    ):
        reader, writer = await inside.tls(f"api.test:{port}", inside.gate.bundle)
        writer.write(f"{head}\r\n\r\n".format(port=port).encode())
        answer = await reader.read()
        writer.transport.abort()
        assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert site.requests == []


async def test_a_host_that_is_not_who_it_says_gets_nothing() -> None:
    """Its certificate is checked before the secret is sent."""
    site = Site()
    async with server(site, WORLD.server("other.test")) as port:
        rule = local(port, host="api.test")
        async with proxy(rule, secrets=(secret(),), trust=WORLD.pem) as inside:
            field = f"X-Key: {holder(inside)}"
            answer = await inside.get_tls(f"api.test:{port}", inside.gate.bundle, field)
            assert answer.startswith(b"HTTP/1.1 502 api.test could not be reached: its certificate")
            assert (inside.only.allowed, inside.only.secrets) == (True, ())
    assert site.requests == []


async def test_a_host_without_tls_gets_nothing() -> None:
    """It cannot show who it is."""
    asked: list[bytes] = []

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)
        asked.append(await reader.read())

    async with server(plain) as port:
        rule = local(port, host="api.test")
        async with proxy(rule, secrets=(secret(),), trust=WORLD.pem) as inside:
            answer = await inside.get_tls(f"api.test:{port}", inside.gate.bundle)
            assert answer.startswith(b"HTTP/1.1 502 api.test could not be reached: TLS with it")
    assert VALUE.encode() not in b"".join(asked)


async def test_a_client_that_does_not_trust_the_run_gets_no_tls() -> None:
    """And the record says why."""
    async with server(Site(), TLS) as port:
        rule = local(port, host="api.test")
        async with proxy(rule, secrets=(secret(),), trust=WORLD.pem) as inside:
            with pytest.raises(ssl.SSLCertVerificationError):
                await inside.tls(f"api.test:{port}", WORLD.pem)
            async with asyncio.timeout(20):
                for _ in iter(lambda: bool(inside.only.reason), True):
                    await asyncio.sleep(0.01)
            assert "did not accept the sandbox's own authority" in inside.only.reason


async def test_another_name_in_the_greeting_is_refused() -> None:
    """Before any certificate is shown."""
    async with server(Site(), TLS) as port:
        rule = local(port, host="api.test")
        async with proxy(rule, secrets=(secret(),), trust=WORLD.pem) as inside:
            with pytest.raises(ssl.SSLError, match="UNRECOGNIZED_NAME"):
                await inside.tls(f"api.test:{port}", inside.gate.bundle, name="other.test")
            assert not inside.only.allowed


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nX: \x00%s\r\n\r\n" % VALUE.encode(),
        b"%s\r\n\r\n" % VALUE.encode(),
        b"HTTP/1.1 200 %s\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n" % VALUE.encode(),
        b"HTTP/1.1 200 %s\r\nLocation: /%s\r\nContent-Length: 9\r\n\r\n" % ((VALUE.encode(),) * 2),
        b"HTTP/1.1 103 %s\r\nLink: %s\r\n\r\n" % ((VALUE.encode(),) * 2) + OK,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: %s\r\n\r\n" % VALUE.encode(),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%s\r\n" % VALUE.encode(),
    ],
)
async def test_nothing_that_goes_wrong_shows_the_value(
    answer: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither answers, nor records, nor logs."""
    caplog.set_level(logging.DEBUG)
    async with (
        server(Site(answer), TLS) as port,
        proxy(local(port, host="api.test"), secrets=(secret(),), trust=WORLD.pem) as inside,
    ):
        field = f"X-Key: {holder(inside)}"
        try:
            found = await inside.get_tls(f"api.test:{port}", inside.gate.bundle, field)
        except (OSError, asyncio.IncompleteReadError):
            found = b""
        assert VALUE.encode() not in found
        assert VALUE not in repr(inside.gate.connections())
        assert VALUE not in repr(vars(inside.gate))
    gc.collect()
    assert VALUE not in caplog.text
