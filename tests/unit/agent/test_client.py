"""The way to the gateway, against a real HTTP server."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from tests.unit.agent.test_wire import reply_body, request

from turnout.agent.client import HttpModelClient
from turnout.errors import GatewayError
from turnout.testing.clock import FrozenClock

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
GOOD = reply_body({"role": "assistant", "content": "hello"})


def refusal(status: int, code: str = "upstream", **headers: str) -> web.Response:
    """Return an error in the shape of the gateway."""
    body = {"error": {"message": f"no: {code}", "code": code}}
    return web.json_response(body, status=status, headers=headers)


def scripted(*answers: web.Response) -> tuple[Handler, list[web.Request]]:
    """Return a handler that gives each answer once, and what it received."""
    left, received = list(answers), []

    async def handle(http: web.Request) -> web.StreamResponse:
        await http.read()
        received.append(http)
        return left.pop(0)

    return handle, received


@asynccontextmanager
async def served(
    socket: Path, handler: Handler, *, clock: FrozenClock | None = None, timeout: float = 10.0
) -> AsyncIterator[HttpModelClient]:
    """Serve a handler behind a unix socket and yield a client to it."""
    app = web.Application()
    app.router.add_post("/v1/chat/completions", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.UnixSite(runner, str(socket)).start()
    client = HttpModelClient(
        base_url="http://gateway/v1/",
        uds=socket,
        api_key="k",
        clock=clock or FrozenClock(),
        timeout=timeout,
    )
    try:
        async with client:
            yield client
    finally:
        await runner.cleanup()


async def test_a_call_carries_its_key_kind_and_routing(tmp_path: Path) -> None:
    """Headers name the kind of call and the idempotency key; the body asks for routing."""
    handler, received = scripted(web.Response(body=GOOD))
    async with served(tmp_path / "s", handler) as client:
        reply = await client.call(request())
    assert (reply.message.content, reply.routing.model) == ("hello", "m")
    headers = received[0].headers
    assert headers["x-turnout-call-kind"] == "act"
    assert headers["idempotency-key"] == "key-1"
    assert headers["authorization"] == "Bearer k"
    assert json.loads(await received[0].read())["routing"]["session"] == "run-1"


@pytest.mark.cases
@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_a_busy_gateway_is_asked_again_under_the_same_key(
    tmp_path: Path, status: int
) -> None:
    """Two failures and a success are a success, and the key stays."""
    handler, received = scripted(refusal(status), refusal(status), web.Response(body=GOOD))
    async with served(tmp_path / "s", handler) as client:
        assert (await client.call(request())).message.content == "hello"
    assert {http.headers["idempotency-key"] for http in received} == {"key-1"}


@pytest.mark.cases
@pytest.mark.parametrize(
    "answer",
    [
        refusal(429, "session_request_cap", **{"x-should-retry": "false"}),
        refusal(402, "session_spend_cap"),
        refusal(403, "tool_not_allowed"),
        refusal(429, "rate_limit", **{"retry-after": "36000"}),
        refusal(400, "invalid"),
        web.Response(body=b"<html>"),
    ],
)
async def test_what_a_retry_cannot_mend_is_asked_once(tmp_path: Path, answer: web.Response) -> None:
    """Caps, refusals, long waits and replies that cannot be read come out at once."""
    handler, received = scripted(answer)
    async with served(tmp_path / "s", handler) as client:
        with pytest.raises(GatewayError):
            await client.call(request())
    assert len(received) == 1


@pytest.mark.cases
@pytest.mark.parametrize(
    ("retry_after", "slept"),
    [("7", 7.0), ("0", 0.5), ("soon", 0.5), ("Thu, 01 Jan 2026 00:00:09 GMT", 9.0)],
)
async def test_retry_after_is_waited_for(tmp_path: Path, retry_after: str, slept: float) -> None:
    """Seconds and dates are understood; nonsense is a short pause."""
    handler, _ = scripted(refusal(503, **{"retry-after": retry_after}), web.Response(body=GOOD))
    clock = FrozenClock()
    async with served(tmp_path / "s", handler, clock=clock) as client:
        await client.call(request())
    assert clock.slept == [slept]


@pytest.mark.cases
async def test_retries_are_bounded(tmp_path: Path) -> None:
    """A gateway that stays down is asked four times, and its last word comes out."""
    handler, received = scripted(*(refusal(503, f"down_{n}") for n in range(9)))
    async with served(tmp_path / "s", handler) as client:
        with pytest.raises(GatewayError, match="no: down_3") as error:
            await client.call(request())
    assert (error.value.status, len(received)) == (503, 4)


async def test_a_gateway_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The error says that it could not be reached and what to check."""
    client = HttpModelClient(
        base_url="http://gateway/v1", uds=tmp_path / "none", api_key="", clock=FrozenClock()
    )
    async with client:
        with pytest.raises(GatewayError, match="could not be reached") as error:
            await client.call(request())
    assert error.value.code == "gateway_unreachable"
    assert error.value.mend


async def test_a_silent_gateway_times_out(tmp_path: Path) -> None:
    """No call waits for ever, and a time-out is not repeated."""
    calls = []

    async def hang(http: web.Request) -> web.StreamResponse:
        calls.append(http)
        await asyncio.Event().wait()
        return web.Response()

    async with served(tmp_path / "s", hang, timeout=0.2) as client:
        with pytest.raises(GatewayError, match="in time"):
            await client.call(request())
    assert len(calls) == 1


@pytest.mark.cases
async def test_a_connection_that_breaks_midway_is_tried_again(tmp_path: Path) -> None:
    """Half a body is no reply; the same key makes the repetition safe."""
    calls = []

    async def half(http: web.Request) -> web.StreamResponse:
        calls.append(http)
        if len(calls) > 1:
            return web.Response(body=GOOD)
        response = web.StreamResponse(headers={"content-length": "1000"})
        await response.prepare(http)
        await response.write(b'{"id": ')
        assert http.transport is not None
        http.transport.close()
        return response

    async with served(tmp_path / "s", half) as client:
        assert (await client.call(request())).message.content == "hello"
    assert len(calls) == 2
