"""Plain HTTP through the gate of a sandbox."""

import asyncio
import re

import pytest
from tests.egress import OK, FixedResolver, Site, local, proxy, server

from turnout.sandbox.base import HostRule

MEND = b"site.test is not reachable from this sandbox: add it to `[policy.egress] allow`"


def status(answer: bytes) -> int:
    """Return the status of an answer."""
    return int(answer.split(b" ", 2)[1])


def head(url: str, *fields: str, method: str = "GET") -> bytes:
    """Return the head of a request."""
    lines = [f"{method} {url} HTTP/1.1", f"Host: {url.split('/')[2]}", *fields, "", ""]
    return "\r\n".join(lines).encode("latin-1")


async def test_a_request_goes_to_the_host_that_a_rule_admits() -> None:
    """As from any client, without what concerns the proxy alone."""
    site = Site()
    async with server(site) as port, proxy(local(port)) as inside:
        answer = await inside.get(
            f"http://Site.TEST:{port}/a?b=c",
            "X-Kept: 1",
            "X-Dropped: 1",
            "Connection: x-dropped",
            "Proxy-Connection: keep-alive",
            "Proxy-Authorization: Basic eDp5",
            "TE: trailers",
            "Keep-Alive: 5",
        )
        assert answer.endswith(b"\r\n\r\nok")
        assert site.requests == [
            f"GET /a?b=c HTTP/1.1\r\nHost: site.test:{port}\r\nX-Kept: 1\r\n"
            "Connection: close\r\n\r\n".encode()
        ]
        only = inside.only
        assert (only.host, only.port, only.allowed, only.reason) == ("site.test", port, True, "")
        assert (only.sent_bytes, only.received_bytes) == (len(site.requests[0]), len(OK))


@pytest.mark.parametrize(
    ("url", "host", "port", "text"),
    [
        ("http://site.test/", "site.test", 80, MEND),
        ("http://site.test:22/", "site.test", 22, b"site.test:22 is not reachable"),
        ("http://other.test/", "other.test", 80, b"other.test is not reachable"),
        ("http://a.site.test:81/", "a.site.test", 81, b"a.site.test:81 is not reachable"),
    ],
)
async def test_what_no_rule_admits_is_refused_with_its_mend(
    url: str, host: str, port: int, text: bytes
) -> None:
    """The answer says so in its first line and in its body; its name is not even looked up."""
    resolver = FixedResolver()
    async with proxy(local(81), resolver=resolver) as inside:
        answer = await inside.get(url)
        first, _, rest = answer.partition(b"\r\n")
        assert first.startswith(b"HTTP/1.1 403 " + text)
        assert rest.partition(b"\r\n\r\n")[2].startswith(text)
        only = inside.only
        assert (only.host, only.port, only.allowed) == (host, port, False)
        assert text.decode() in only.reason
    assert resolver.asked == []


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "169.254.169.254",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[fe80::1%25lo]",
        "127.0.0.1.",
        "site.test%2eevil",
        "site..test",
    ],
)
async def test_an_address_is_refused_in_every_spelling(host: str) -> None:
    """Also where a rule admits everything that is below something."""
    resolver = FixedResolver()
    async with proxy(HostRule("*.test", (80,), private=True), resolver=resolver) as inside:
        answer = await inside.get(f"http://{host}/")
        assert status(answer) == 403
        assert not inside.only.allowed
        assert inside.only.host == host
    assert resolver.asked == []


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ("10.0.0.1", b"its address is not public"),
        ("127.0.0.1 ::1 fd00::1", b"its address is not public"),
        ("169.254.169.254", b"its address is not public"),
    ],
)
async def test_a_name_that_leads_inwards_is_refused(answers: str, why: bytes) -> None:
    """The operator's own word is needed for that; the answer does not show the address."""
    resolver = FixedResolver({"site.test": answers})
    async with proxy(HostRule("site.test"), resolver=resolver) as inside:
        answer = await inside.get("http://site.test/")
        assert status(answer) == 403
        assert why in answer
        assert answers.split()[0].encode() not in answer
        assert not inside.only.allowed


async def test_a_private_rule_does_not_lead_to_credentials_of_the_machine() -> None:
    """Whatever a name inside the company resolves to."""
    resolver = FixedResolver({"site.test": "169.254.169.254"})
    async with proxy(local(80), resolver=resolver) as inside:
        assert status(await inside.get("http://site.test/")) == 403


async def test_the_address_that_was_checked_is_the_one_connected_to() -> None:
    """A second answer of the name's owner, by which it would lead elsewhere, is never asked for."""
    site = Site()
    async with server(site) as port:
        resolver = FixedResolver({"site.test": ["127.0.0.1", "10.9.8.7", "169.254.169.254"]})
        async with proxy(local(port), resolver=resolver) as inside:
            assert status(await inside.get(f"http://site.test:{port}/")) == 200
    assert resolver.asked == ["site.test"]


async def test_each_connection_is_checked_anew() -> None:
    """A name that was fine before may lead inwards now."""
    resolver = FixedResolver({"site.test": ["", "10.0.0.1"]})
    async with proxy(HostRule("site.test"), resolver=resolver) as inside:
        assert status(await inside.get("http://site.test/")) == 502
        assert status(await inside.get("http://site.test/")) == 403


async def test_of_a_mixed_answer_only_what_is_allowed_is_used() -> None:
    """The first address that may be connected to and answers."""
    site = Site()
    async with server(site) as port:
        resolver = FixedResolver({"site.test": "169.254.169.254 0.0.0.0 127.0.0.1"})
        async with proxy(local(port), resolver=resolver) as inside:
            assert status(await inside.get(f"http://site.test:{port}/")) == 200


async def test_an_address_that_is_down_is_passed_over() -> None:
    """As long as another one answers."""
    site = Site()
    async with server(site) as port:
        resolver = FixedResolver({"site.test": "127.0.0.2 ::1 127.0.0.1"})
        async with proxy(local(port), resolver=resolver) as inside:
            assert status(await inside.get(f"http://site.test:{port}/")) == 200


async def test_a_refusal_is_read_by_a_client_that_is_still_sending() -> None:
    """The end of the connection does not overtake it."""
    async with proxy(local(80)) as inside:
        request = head("http://other.test/", "Content-Length: 400000", method="POST")
        reader, writer = await inside.open()
        for piece in (request, *(bytes(100_000),) * 4):
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.05)
        assert (await reader.read()).endswith(b"add it to `[policy.egress] allow`\n")
        writer.transport.abort()


async def test_a_redirect_inwards_is_a_request_like_any_other() -> None:
    """The client follows it, and is refused."""
    site = Site(
        b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n"
    )
    async with server(site) as port, proxy(local(port)) as inside:
        answer = await inside.get(f"http://site.test:{port}/")
        there = re.search(rb"Location: (\S+)", answer)
        assert there is not None
        assert status(await inside.get(there[1].decode())) == 403
        assert [each.allowed for each in inside.gate.connections()] == [True, False]


async def test_a_host_that_is_down_is_a_bad_gateway() -> None:
    """With the reason, and on record as allowed."""
    async with server(Site()) as port:
        pass
    async with proxy(local(port)) as inside:
        answer = await inside.get(f"http://site.test:{port}/")
        assert status(answer) == 502
        assert b"it refused the connection" in answer
        assert (inside.only.allowed, bool(inside.only.reason)) == (True, True)


async def test_requests_on_one_connection_go_to_different_hosts() -> None:
    """Each is checked, and is on record."""
    one, two = Site(), Site(OK.replace(b"ok", b"no"))
    async with (
        server(one) as first,
        server(two) as second,
        proxy(local(first, host="a.test"), local(second, host="b.test")) as inside,
    ):
        answer = await inside.ask(
            head(f"http://a.test:{first}/1")
            + head(f"http://b.test:{second}/2")
            + head(f"http://a.test:{second}/3")
        )
        assert re.findall(rb"HTTP/1.1 (\d+)", answer) == [b"200", b"200", b"403"]
        assert b"ok" in answer
        assert b"no" in answer
        assert (len(one.requests), len(two.requests)) == (1, 1)
        assert [each.allowed for each in inside.gate.connections()] == [True, True, False]


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (
            [
                "POST {url} HTTP/1.1",
                "Host: {host}",
                "Content-Length: 3",
                "Transfer-Encoding: chunked",
            ],
            400,
        ),
        (["POST {url} HTTP/1.1", "Host: {host}", "Content-Length: 3", "Content-Length: 4"], 400),
        (["POST {url} HTTP/1.1", "Host: {host}", "Content-Length: +3"], 400),
        (["POST {url} HTTP/1.1", "Host: {host}", "Content-Length: 3, 4"], 400),
        (["POST {url} HTTP/1.1", "Host: {host}", "Transfer-Encoding: gzip, chunked"], 501),
        (["POST {url} HTTP/1.1", "Host: {host}", "Transfer-Encoding: chunked, chunked"], 501),
        (["POST {url} HTTP/1.1", "Host: {host}", "Transfer-Encoding: xchunked"], 501),
        (["POST {url} HTTP/1.1", "Host: {host}", "Transfer-Encoding : chunked"], 400),
        (["POST {url} HTTP/1.1", "Host: {host}", "Transfer-Encoding:\x0bchunked"], 400),
        (["POST {url} HTTP/1.0", "Host: {host}", "Transfer-Encoding: chunked"], 400),
        (["GET {url} HTTP/1.1", "Host: {host}", "X: a", " folded: b"], 400),
        (["GET {url} HTTP/1.1", "Host: {host}", "\tX: a"], 400),
        (["GET {url} HTTP/1.1", "Host: {host}", "X: a\nY: b"], 400),
        (["GET {url} HTTP/1.1", "Host: {host}", "X: a\rY: b"], 400),
        (["GET {url} HTTP/1.1", "Host: {host}", "X: a\0b"], 400),
        (["GET {url} HTTP/1.1", "Host: {host}", "X"], 400),
        (["GET {url} HTTP/1.1", "Host: {host}", ": x"], 400),
        (["GET {url} HTTP/1.1", "Host: {host}", "Host: {host}"], 400),
        (["GET {url} HTTP/1.1", "Host: other.test"], 400),
        (["GET {url} HTTP/1.1", "Host: site.test"], 400),
        (["GET {url} HTTP/1.1", "Host: {host}, other.test"], 400),
        (["GET {url} HTTP/1.1", "Host: "], 400),
        (["GET {url} HTTP/1.1"], 400),
        (["GET  {url} HTTP/1.1", "Host: {host}"], 400),
        (["GET {url} HTTP/1.1 x", "Host: {host}"], 400),
        (["GET {url} HTTP/2.0", "Host: {host}"], 505),
        (["GET {url}", "Host: {host}"], 400),
        (["GET http://me:pw@{host}/ HTTP/1.1", "Host: {host}"], 400),
        (["GET http://{host}/#x HTTP/1.1", "Host: {host}"], 400),
        (["GET ftp://{host}/ HTTP/1.1", "Host: {host}"], 400),
        (["GET https://{host}/ HTTP/1.1", "Host: {host}"], 400),
        (["GET / HTTP/1.1", "Host: {host}"], 400),
        (["OPTIONS * HTTP/1.1", "Host: {host}"], 400),
        (["TRACE {url} HTTP/1.1", "Host: {host}"], 405),
        (["GET {url} HTTP/1.1", "Host: {host}", "Connection: upgrade", "Upgrade: websocket"], 501),
        (["PRI * HTTP/2.0", "", "SM"], 505),
        (["\x16\x03\x01\x02\x00\x01"], 400),
        (["", "GET {url} HTTP/1.1", "Host: {host}"], 400),
    ],
)
async def test_a_request_that_can_be_read_in_two_ways_is_refused(
    lines: list[str], code: int
) -> None:
    """Nothing of it reaches the host."""
    site = Site()
    async with server(site) as port, proxy(local(port)) as inside:
        host = f"site.test:{port}"
        text = "\r\n".join([*lines, "", "abc"]).format(url=f"http://{host}/", host=host)
        answer = await inside.ask(text.encode("latin-1"))
        assert (status(answer), site.requests) == (code, [])


async def test_a_header_field_cannot_make_another_one_vanish() -> None:
    """What `Connection` names is dropped, but never the length of a body or the host."""
    site = Site()
    async with server(site) as port, proxy(local(port)) as inside:
        url = f"http://site.test:{port}/"
        fields = ("Content-Length: 3", "Connection: close, content-length, host")
        answer = await inside.ask(head(url, *fields, method="POST") + b"abc")
        assert status(answer) == 200
        assert site.requests[0].endswith(b"\r\n\r\nabc")
        assert b"Content-Length: 3" in site.requests[0]


async def test_a_body_in_chunks_is_passed_on_in_chunks() -> None:
    """Without what comes after it."""
    site = Site()
    async with server(site) as port, proxy(local(port)) as inside:
        url = f"http://site.test:{port}/"
        body = b"3;x=y\r\nabc\r\n", b"2\r\nde\r\n0\r\nX-Trailer: 1\r\n\r\n"
        fields = ("Transfer-Encoding: chunked", "Trailer: X-Trailer", "Connection: close")
        answer = await inside.ask(head(url, *fields, method="POST"), *body)
        assert status(answer) == 200
        sent, _, chunks = site.requests[0].partition(b"\r\n\r\n")
        assert b"Trailer" not in sent
        assert chunks == b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "seen"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok"),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", b"d\r\nuntil the end\r\n0\r\n\r\n"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n",
            b"2\r\nok\r\n0\r\n\r\n",
        ),
        (b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + OK, b"ok"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    ],
)
async def test_an_answer_ends_where_it_ends(answer: bytes, seen: bytes) -> None:
    """However its host says so."""
    async with server(Site(answer)) as port, proxy(local(port)) as inside:
        found = await inside.get(f"http://site.test:{port}/")
        assert found.rpartition(b"\r\n\r\n" + seen)[1:] == (b"\r\n\r\n" + seen, b"")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"garbage\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        OK.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n"),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nok",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * (1 << 17),
    ],
)
async def test_an_answer_that_is_none_is_a_bad_gateway(answer: bytes) -> None:
    """And on record as a failure."""
    async with server(Site(answer)) as port, proxy(local(port)) as inside:
        assert status(await inside.get(f"http://site.test:{port}/")) == 502
        assert inside.only.reason


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokXX0\r\n\r\n",
    ],
)
async def test_an_answer_that_breaks_off_does_so_inside_too(answer: bytes) -> None:
    """It does not look complete."""
    async with server(Site(answer)) as port, proxy(local(port)) as inside:
        found = await inside.get(f"http://site.test:{port}/")
        assert not found.endswith(b"0\r\n\r\n")
        assert b"Content-Length: 2\r" not in found
        assert inside.only.reason == "it broke off"


async def test_an_answer_to_head_keeps_the_length() -> None:
    """There is no body to measure."""
    site = Site(b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n")
    async with server(site) as port, proxy(local(port)) as inside:
        answer = await inside.get(f"http://site.test:{port}/", method="HEAD")
        assert b"Content-Length: 2000" in answer
        assert answer.endswith(b"\r\n\r\n")


async def test_a_client_may_wait_for_the_word_to_go_on() -> None:
    """The host gives it, or refuses before it has the body."""

    async def wary(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        if b"/big" in asked:
            writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        else:
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n")
            writer.write(await reader.readexactly(3))
        await writer.drain()

    async with server(wary) as port, proxy(local(port)) as inside:
        fields = ("Expect: 100-continue", "Content-Length: 3")
        reader, writer = await inside.open()
        writer.write(head(f"http://site.test:{port}/", *fields, method="PUT"))
        assert status(await reader.readuntil(b"\r\n\r\n")) == 100
        writer.write(b"abc")
        assert status(await reader.readuntil(b"\r\n\r\n")) == 200
        assert await reader.readexactly(3) == b"abc"
        writer.transport.abort()
        refused = await inside.ask(head(f"http://site.test:{port}/big", *fields, method="PUT"))
        assert status(refused) == 413


async def test_an_old_client_gets_an_old_answer() -> None:
    """HTTP/1.0 knows no chunks and no information beforehand."""
    site = Site(
        b"HTTP/1.1 103 Early Hints\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    )
    async with server(site) as port, proxy(local(port)) as inside:
        answer = await inside.ask(f"GET http://site.test:{port}/ HTTP/1.0\r\n\r\n".encode())
        assert status(answer) == 200
        assert b"chunked" not in answer
        assert answer.endswith(b"\r\n\r\nok")


@pytest.mark.parametrize(
    "field",
    [
        "",
        "Proxy-Authorization: Basic dHVybm91dDp3cm9uZw==",
        "Proxy-Authorization: Bearer token",
        "Proxy-Authorization: Basic !",
        "Proxy-Authorization: Basic dHVybm91dDp0b2tlbg==\r\nProxy-Authorization: Basic dA==",
    ],
)
async def test_a_gate_with_a_token_serves_nobody_else(field: str) -> None:
    """Neither requests nor tunnels, whatever rules there are."""
    async with server(Site()) as port, proxy(local(port), token="token") as inside:
        fields = (field,) if field else ()
        answer = await inside.get(f"http://site.test:{port}/", *fields)
        tunnel, _, writer = await inside.connect(f"site.test:{port}", *fields)
        writer.transport.abort()
        assert (status(answer), status(tunnel)) == (407, 407)
        assert b'Proxy-Authenticate: Basic realm="turnout"' in answer
        assert inside.gate.connections() == ()


async def test_a_gate_with_a_token_serves_who_has_it() -> None:
    """And does not pass it on."""
    site = Site()
    async with server(site) as port, proxy(local(port), token="token") as inside:
        field = "Proxy-Authorization: basic dHVybm91dDp0b2tlbg=="
        assert status(await inside.get(f"http://site.test:{port}/", field)) == 200
        assert b"dHVybm91dDp0b2tlbg" not in site.requests[0]
