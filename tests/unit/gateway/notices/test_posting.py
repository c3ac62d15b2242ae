"""Where messages may be sent, and where not."""

import socket
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from turnout.errors import UsageError
from turnout.gateway.notices.posting import HttpPoster, NotTakenError, check_url


@asynccontextmanager
async def server(handler):
    """Serve on a free port of loopback and hand out the port."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    listening = socket.create_server(("127.0.0.1", 0))
    await web.SockSite(runner, listening).start()
    try:
        yield listening.getsockname()[1]
    finally:
        await runner.cleanup()


@pytest.fixture
async def poster():
    """Hand out one, and close it."""
    async with HttpPoster() as opened:
        yield opened


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/in",
        "https://10.0.0.1/in",
        "https://[::1]/in",
        "https://[fe80::1%25eth0]/in",
        "https://169.254.169.254/latest",
        "https://user:word@example.org/",
        "https:///in",
        "ftp://example.org/",
        "https://example.org:0/",
        "https://example.org/\n",
        "https://example.org/é",
        "https://[::1/",
        "javascript:alert(1)",
        "",
        f"https://example.org/{'x' * 2_048}",
    ],
)
def test_an_address_that_no_message_may_go_to_is_refused(url):
    """Before it is kept."""
    with pytest.raises(UsageError):
        check_url(url, allow_private=False)


@pytest.mark.parametrize("url", ["https://169.254.169.254/", "http://0.0.0.0/", "ftp://10.0.0.1/"])
def test_some_addresses_are_refused_even_where_private_ones_are_allowed(url):
    """Clouds hand out credentials there."""
    with pytest.raises(UsageError):
        check_url(url, allow_private=True)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/in", "http://localhost/", "https://10.1.1.1/"])
def test_a_private_address_is_taken_where_it_is_allowed(url):
    """Plain http as well."""
    check_url(url, allow_private=True)


async def test_a_message_arrives_as_it_was_signed(poster):
    """Byte for byte."""
    got = []

    async def take(request):
        got.append((request.method, request.headers["webhook-id"], await request.read()))
        return web.Response(status=204)

    async with server(take) as port:
        url = f"http://127.0.0.1:{port}/in"
        await poster.post(url, {"webhook-id": "m"}, b'{"a":1}', allow_private=True)
    assert got == [("POST", "m", b'{"a":1}')]


async def test_a_name_of_a_private_address_is_refused_as_the_address_is(poster):
    """Its owner may point it anywhere, at any time; nothing is connected to."""
    asked = []

    async def take(request):
        asked.append(request.path)
        return web.Response()

    async with server(take) as port:
        for host in ("localhost", "0x7f000001", "2130706433", "127.1"):
            with pytest.raises(NotTakenError, match="its address"):
                await poster.post(f"https://{host}:{port}/", {}, b"", allow_private=False)
    assert asked == []


async def test_a_redirect_is_not_followed(poster):
    """It would lead anywhere."""
    asked = []

    async def take(request):
        asked.append(request.path)
        return web.Response(status=307, headers={"location": "/elsewhere"})

    async with server(take) as port:
        with pytest.raises(NotTakenError, match="answered 307"):
            await poster.post(f"http://127.0.0.1:{port}/in", {}, b"", allow_private=True)
    assert asked == ["/in"]


async def test_an_answer_that_never_ends_is_not_read(poster):
    """Its status says all that counts."""

    async def take(request):
        answer = web.StreamResponse()
        answer.content_length = 10**12
        await answer.prepare(request)
        await answer.write(b"x")
        return answer

    async with server(take) as port:
        await poster.post(f"http://127.0.0.1:{port}/in", {}, b"", allow_private=True)


async def test_a_receiver_that_is_not_there_is_named_without_its_address(poster):
    """What is shown of a failure may be read by more people than the address."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(NotTakenError) as failed:
        await poster.post(f"http://127.0.0.1:{port}/secret-path", {}, b"", allow_private=True)
    assert str(failed.value) == "it refused the connection"
