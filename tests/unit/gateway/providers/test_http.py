"""Whatever a provider does, the gateway gets an answer or an `UpstreamError`."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from typing import Literal

import pytest

from turnout.core.clock import SystemClock
from turnout.core.ids import ProviderName
from turnout.core.json import JsonObject, as_object, as_objects
from turnout.gateway.catalog import Account, Provider
from turnout.gateway.dialog.events import Reply
from turnout.gateway.exchange import UpstreamError
from turnout.gateway.providers.authenticator import Prepared
from turnout.gateway.providers.http import HttpUpstream
from turnout.gateway.wire.chat import ChatShape
from turnout.gateway.wire.chat.reader import ChatReader
from turnout.testing.exchange import PLAIN_REQUEST, deployment
from turnout.testing.model_server import (
    Call,
    Fault,
    Refusal,
    Script,
    ScriptedModelServer,
    Turn,
    refusing_base_url,
)

TEXT = "one two three four five six 北京🙂é"
ASK: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
STREAM: JsonObject = {**ASK, "stream": True, "stream_options": {"include_usage": True}}
MODEL = deployment("acme/m")
PATH = "/chat/completions"
SHAPE = ChatShape()


@asynccontextmanager
async def served(script: Script) -> AsyncIterator[tuple[HttpUpstream, Provider]]:
    """Yield an upstream and the provider that a scripted server plays."""
    async with ScriptedModelServer(script) as server, HttpUpstream(SystemClock()) as upstream:
        yield upstream, Provider(ProviderName("acme"), server.base_url, idle_timeout=0.3)


async def read(upstream: HttpUpstream, provider: Provider) -> Reply:
    """Return what one stream amounts to."""
    reader = SHAPE.reader(PLAIN_REQUEST, MODEL)
    await read_into(reader, upstream, provider)
    reader.end()
    return reader.so_far()


async def read_into(reader: ChatReader, upstream: HttpUpstream, provider: Provider) -> None:
    """Read one stream until it ends or breaks."""
    async for event in upstream.stream(provider, PATH, STREAM, {}):
        reader.read(event)


async def ask(upstream: HttpUpstream, provider: Provider) -> Reply:
    """Return what one whole answer says."""
    reply = await upstream.complete(provider, PATH, ASK, {})
    return SHAPE.read(reply.body, PLAIN_REQUEST, MODEL).reply


async def test_a_whole_answer_comes_back_as_it_was() -> None:
    """The body is the upstream's, unknown fields included."""
    async with served([Turn(TEXT, reasoning="hm")]) as (upstream, provider):
        reply = await upstream.complete(provider, PATH, ASK, {})
    message = as_object(as_objects(reply.body.get("choices"))[0].get("message"))
    assert (message["content"], message["reasoning_content"]) == (TEXT, "hm")
    assert reply.latency_ms >= 0


@pytest.mark.faults
@pytest.mark.parametrize("fault", [None, "drip", "no_done", "content_type", "no_usage"])
async def test_a_stream_arrives_whole_in_spite_of(fault: Fault | None) -> None:
    """Splits, a missing `[DONE]` and a wrong content type lose nothing."""
    async with served([Turn(TEXT, fault=fault)]) as (upstream, provider):
        assert (await read(upstream, provider)).text == TEXT


@pytest.mark.faults
@pytest.mark.parametrize(
    "fault",
    [
        "reset",
        "reset_after_headers",
        "cut",
        "stall",
        "stall_midway",
        "html",
        "bad_json",
        "error_in_band",
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_fault_is_an_upstream_error(fault: Fault, stream: bool) -> None:
    """Nothing that goes wrong passes for an answer, and nothing hangs."""
    async with served([Turn(TEXT, fault=fault)]) as (upstream, provider):
        asked = read(upstream, provider) if stream else ask(upstream, provider)
        with pytest.raises(UpstreamError) as caught:
            await asked
    assert not str(caught.value).startswith("acme")
    assert caught.value.retryable


@pytest.mark.faults
@pytest.mark.cases
async def test_a_call_that_was_cut_is_an_error_after_its_fragments() -> None:
    """A cut inside a call's arguments never ends as a finished call."""
    turn = Turn(calls=(Call("apply_patch", {"diff": "--- a/long/patch"}),), fault="cut")
    async with served([turn]) as (upstream, provider):
        reader = SHAPE.reader(PLAIN_REQUEST, MODEL)
        with pytest.raises(UpstreamError) as caught:
            await read_into(reader, upstream, provider)
    assert caught.value.status is None
    assert reader.so_far().calls[0].name == "apply_patch"
    with pytest.raises(UpstreamError):
        reader.end()


@pytest.mark.faults
@pytest.mark.cases
async def test_an_error_in_band_keeps_its_status_and_body() -> None:
    """An error object among the chunks is raised, not read as an empty chunk."""
    async with served([Turn(TEXT, fault="error_in_band")]) as (upstream, provider):
        with pytest.raises(UpstreamError) as caught:
            await read(upstream, provider)
    assert caught.value.status == 503
    assert b"overloaded by script" in (caught.value.body or b"")


@pytest.mark.faults
async def test_a_refused_stream_says_how_long_to_wait() -> None:
    """The status and the wait are there before the first chunk."""
    refusal = Refusal(429, "slow down", headers={"Retry-After": "7"})
    async with served([refusal]) as (upstream, provider):
        with pytest.raises(UpstreamError) as caught:
            await read(upstream, provider)
    assert (caught.value.status, caught.value.retry_after) == (429, 7.0)


@pytest.mark.faults
async def test_a_redirect_is_not_followed() -> None:
    """Neither key nor prompt goes to an address that nobody named."""
    refusal = Refusal(307, headers={"Location": "http://127.0.0.1:9/"})
    async with served([refusal]) as (upstream, provider):
        with pytest.raises(UpstreamError, match="redirects"):
            await ask(upstream, provider)


@pytest.mark.faults
@pytest.mark.parametrize("url", ["http://no-such-host.invalid/v1", "nonsense"])
async def test_an_address_that_is_none_is_an_upstream_error(url: str) -> None:
    """A bad host or URL is told apart from a bad answer."""
    async with HttpUpstream(SystemClock()) as upstream:
        with pytest.raises(UpstreamError):
            await upstream.models(Provider(ProviderName("acme"), url, connect_timeout=2))


@pytest.mark.faults
async def test_a_refused_connection_says_so() -> None:
    """The system's own reason is in the message."""
    with refusing_base_url() as url:
        async with HttpUpstream(SystemClock()) as upstream:
            with pytest.raises(UpstreamError, match="refused"):
                await ask(upstream, Provider(ProviderName("acme"), url))


@pytest.mark.faults
async def test_an_answer_without_choices_is_an_error() -> None:
    """A body that is JSON and no completion is not forwarded."""
    async with served([Refusal(200, raw=b'{"choices":[]}')]) as (upstream, provider):
        with pytest.raises(UpstreamError, match="without a choice"):
            await ask(upstream, provider)


@pytest.mark.faults
async def test_an_endless_body_is_refused() -> None:
    """A provider cannot fill the memory."""
    async with served([Refusal(200, raw=b" " * 33 * 2**20)]) as (upstream, provider):
        with pytest.raises(UpstreamError, match="more than 32 MiB"):
            await ask(upstream, provider)


@pytest.mark.faults
async def test_an_endless_stream_is_refused() -> None:
    """Nor can it in small pieces."""

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        with suppress(ConnectionError):
            while True:
                writer.write(b": " + b"x" * 2**20 + b"\n\n")
                await writer.drain()
        writer.close()

    async with (
        await asyncio.start_server(endless, "127.0.0.1", 0) as server,
        HttpUpstream(SystemClock()) as upstream,
    ):
        port = server.sockets[0].getsockname()[1]
        provider = Provider(ProviderName("acme"), f"http://127.0.0.1:{port}/v1")
        with pytest.raises(UpstreamError, match="more than 128 MiB"):
            await read(upstream, provider)


@pytest.mark.faults
async def test_closing_the_iterator_closes_the_connection() -> None:
    """The provider sees at once that nobody listens any more."""
    async with (
        ScriptedModelServer([Turn(TEXT, fault="stall_midway")]) as server,
        HttpUpstream(SystemClock()) as upstream,
    ):
        provider = Provider(ProviderName("acme"), server.base_url)
        async with aclosing(upstream.stream(provider, PATH, STREAM, {})) as chunks:
            await anext(chunks)
        await asyncio.wait_for(server.requests[0].closed.wait(), 1)


@pytest.mark.cases
async def test_cancelling_a_whole_request_closes_the_connection() -> None:
    """A caller who leaves stops the provider's work."""
    async with (
        ScriptedModelServer([Turn(fault="stall")]) as server,
        HttpUpstream(SystemClock()) as upstream,
    ):
        provider = Provider(ProviderName("acme"), server.base_url)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(upstream.complete(provider, PATH, ASK, {}), 0.1)
        await asyncio.wait_for(server.requests[0].closed.wait(), 1)


async def test_the_key_is_sent_as_a_bearer_token_or_not_at_all() -> None:
    """No key, no header."""
    async with (
        ScriptedModelServer([Turn("a"), Turn("b")]) as server,
        HttpUpstream(SystemClock()) as upstream,
    ):
        provider = Provider(ProviderName("acme"), server.base_url)
        await upstream.complete(provider, PATH, ASK, {})
        await upstream.complete(replace(provider, api_key="sk-1"), PATH, ASK, {})
        sent = [request.headers.get("authorization") for request in server.requests]
    assert sent == [None, "Bearer sk-1"]


@pytest.mark.parametrize("header", ["x-api-key", "api-key"])
async def test_the_key_goes_where_the_catalog_says(header: Literal["x-api-key", "api-key"]) -> None:
    """Headers of the provider go along; those of the client never carry a key over ours."""
    async with (
        ScriptedModelServer([Turn("a")]) as server,
        HttpUpstream(SystemClock()) as upstream,
    ):
        provider = Provider(
            ProviderName("acme"),
            server.base_url,
            api_key="sk-1",
            key_header=header,
            headers={"X-Tenant": "t"},
        )
        await upstream.complete(provider, PATH, ASK, {"openai-beta": "b", header: "theirs"})
        sent = server.requests[0].headers
    assert (sent[header], sent["x-tenant"], sent["openai-beta"]) == ("sk-1", "t", "b")
    assert "authorization" not in sent


async def test_an_exact_address_gets_nothing_added() -> None:
    """Some services name the whole address, query included."""
    async with (
        ScriptedModelServer([Turn("a")]) as server,
        HttpUpstream(SystemClock()) as upstream,
    ):
        url = f"{server.base_url}/chat/completions?version=1"
        provider = Provider(ProviderName("acme"), url, exact_path=True)
        assert (await ask(upstream, provider)).text == "a"


async def test_an_account_prepares_the_request_in_the_place_of_the_key() -> None:
    """It may change the address, the headers and the body."""

    class Signing:
        async def prepare(
            self, provider: Provider, url: str, headers: Mapping[str, str], body: bytes
        ) -> Prepared:
            assert "authorization" not in headers
            return Prepared(url.replace("/wrong", "/v1"), {**headers, "x-signed": "yes"}, body)

    async with (
        ScriptedModelServer([Turn("a")]) as server,
        HttpUpstream(SystemClock(), {"acme": Signing()}) as upstream,
    ):
        provider = Provider(
            ProviderName("acme"),
            server.base_url.replace("/v1", "/wrong"),
            api_key="sk-1",
            account=Account("azure"),
        )
        assert (await ask(upstream, provider)).text == "a"
        assert server.requests[0].headers["x-signed"] == "yes"
        with pytest.raises(UpstreamError, match="needs the adapter for azure accounts"):
            await ask(upstream, replace(provider, name=ProviderName("other")))


async def test_a_server_that_does_not_stream_is_read_all_the_same() -> None:
    """One JSON object in the place of a stream is the whole answer."""
    whole = b'{"choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"stop"}]}'
    async with served([Refusal(200, raw=whole)]) as (upstream, provider):
        assert (await read(upstream, provider)).text == "Hi"


async def test_a_stream_declared_as_json_is_read_as_a_stream() -> None:
    """The bytes say what they are."""
    chunk = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'
    raw = chunk + b"data: [DONE]\n\n"
    async with served([Refusal(200, raw=raw)]) as (upstream, provider):
        assert (await read(upstream, provider)).text == "Hi"


@pytest.mark.faults
async def test_an_error_in_band_does_not_quote_our_key() -> None:
    """Some servers repeat the key that they do not like."""
    said = b'data: {"error":{"message":"bad key sk-secret-1"}}\n\n'
    async with served([Refusal(200, raw=said)]) as (upstream, provider):
        with pytest.raises(UpstreamError) as caught:
            await read(upstream, replace(provider, api_key="sk-secret-1"))
    assert "sk-secret-1" not in str(caught.value)
    assert b"sk-secret-1" not in (caught.value.body or b"")


@pytest.mark.faults
async def test_a_drip_that_never_ends_is_given_up() -> None:
    """A byte now and then keeps no request alive for ever."""
    turn = Turn("x" * 400, fault="drip", pause=0.02)
    async with (
        ScriptedModelServer([turn]) as server,
        HttpUpstream(SystemClock(), longest=0.3) as upstream,
    ):
        provider = Provider(ProviderName("acme"), server.base_url)
        with pytest.raises(UpstreamError, match=r"was not done after 0\.3 s") as caught:
            await read(upstream, provider)
    assert caught.value.timed_out


async def test_the_models_of_a_provider_are_listed() -> None:
    """Names come in the provider's order."""
    async with (
        ScriptedModelServer([], models=["b", "a"]) as server,
        HttpUpstream(SystemClock()) as upstream,
    ):
        assert await upstream.models(Provider(ProviderName("x"), server.base_url)) == ("b", "a")


async def test_a_listing_that_does_not_come_is_given_up() -> None:
    """Long before an answer would be: a listing is no work."""
    held = asyncio.Event()

    async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await held.wait()
        writer.close()

    async with (
        await asyncio.start_server(silent, "127.0.0.1", 0) as server,
        HttpUpstream(SystemClock()) as upstream,
    ):
        port = server.sockets[0].getsockname()[1]
        address = f"http://127.0.0.1:{port}/v1"
        with pytest.raises(UpstreamError, match=r"did not list its models within 0\.1 s"):
            await upstream.models(Provider(ProviderName("x"), address, idle_timeout=0.1))
        held.set()


async def test_a_name_that_is_none_is_not_listed() -> None:
    """Nor one that could steer a terminal."""
    async with (
        ScriptedModelServer([], models=["\x1b[2Jm", " ", "m"]) as server,
        HttpUpstream(SystemClock()) as upstream,
    ):
        assert await upstream.models(Provider(ProviderName("x"), server.base_url)) == ("m",)
