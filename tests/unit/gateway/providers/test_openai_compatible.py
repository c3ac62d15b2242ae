"""Whatever a provider does, the gateway gets chunks or an `UpstreamError`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace

import pytest

from turnout.core.clock import SystemClock
from turnout.core.ids import ProviderName
from turnout.core.json import JsonObject, as_object, as_objects, as_text
from turnout.gateway.catalog import Provider
from turnout.gateway.exchange import UpstreamError
from turnout.gateway.providers.openai_compatible import OpenAICompatible
from turnout.testing.exchange import deployment
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


@asynccontextmanager
async def served(script: Script) -> AsyncIterator[tuple[OpenAICompatible, Provider]]:
    """Yield an upstream and the provider that a scripted server plays."""
    async with ScriptedModelServer(script) as server, OpenAICompatible(SystemClock()) as upstream:
        yield upstream, Provider(ProviderName("acme"), server.base_url, idle_timeout=0.3)


async def read(upstream: OpenAICompatible, provider: Provider) -> list[JsonObject]:
    """Return every chunk of one stream."""
    return [chunk async for chunk in upstream.stream(provider, MODEL, STREAM)]


async def _exhaust(chunks: AsyncIterator[JsonObject]) -> None:
    async for _ in chunks:
        pass


def text_of(chunks: list[JsonObject]) -> str:
    """Return the text that chunks join to."""
    choices = (choice for chunk in chunks for choice in as_objects(chunk.get("choices")))
    return "".join(as_text(as_object(c.get("delta")).get("content")) for c in choices)


async def test_a_whole_answer_comes_back_as_it_was() -> None:
    """The body is the upstream's, unknown fields included."""
    async with served([Turn(TEXT, reasoning="hm")]) as (upstream, provider):
        reply = await upstream.complete(provider, MODEL, ASK)
    message = as_object(as_objects(reply.body.get("choices"))[0].get("message"))
    assert (message["content"], message["reasoning_content"]) == (TEXT, "hm")
    assert reply.latency_ms >= 0


@pytest.mark.faults
@pytest.mark.parametrize("fault", [None, "drip", "no_done", "content_type", "no_usage"])
async def test_a_stream_arrives_whole_in_spite_of(fault: Fault | None) -> None:
    """Splits, a missing `[DONE]` and a wrong content type lose nothing."""
    async with served([Turn(TEXT, fault=fault)]) as (upstream, provider):
        assert text_of(await read(upstream, provider)) == TEXT


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
        asked = read(upstream, provider) if stream else upstream.complete(provider, MODEL, ASK)
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
        chunks = upstream.stream(provider, MODEL, STREAM)
        seen = [await anext(chunks), await anext(chunks)]
        with pytest.raises(UpstreamError) as caught:
            await _exhaust(chunks)
    assert caught.value.status is None
    assert "apply_patch" in str(seen)


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
            await upstream.complete(provider, MODEL, ASK)


@pytest.mark.faults
@pytest.mark.parametrize("url", ["http://no-such-host.invalid/v1", "nonsense"])
async def test_an_address_that_is_none_is_an_upstream_error(url: str) -> None:
    """A bad host or URL is told apart from a bad answer."""
    async with OpenAICompatible(SystemClock()) as upstream:
        with pytest.raises(UpstreamError):
            await upstream.models(Provider(ProviderName("acme"), url, connect_timeout=2))


@pytest.mark.faults
async def test_a_refused_connection_says_so() -> None:
    """The system's own reason is in the message."""
    with refusing_base_url() as url:
        async with OpenAICompatible(SystemClock()) as upstream:
            with pytest.raises(UpstreamError, match="refused"):
                await upstream.complete(Provider(ProviderName("acme"), url), MODEL, ASK)


@pytest.mark.faults
async def test_an_answer_without_choices_is_an_error() -> None:
    """A body that is JSON and no completion is not forwarded."""
    async with served([Refusal(200, raw=b'{"choices":[]}')]) as (upstream, provider):
        with pytest.raises(UpstreamError, match="without a choice"):
            await upstream.complete(provider, MODEL, ASK)


@pytest.mark.faults
async def test_an_endless_body_is_refused() -> None:
    """A provider cannot fill the memory."""
    async with served([Refusal(200, raw=b" " * 33 * 2**20)]) as (upstream, provider):
        with pytest.raises(UpstreamError, match="more than 32 MiB"):
            await upstream.complete(provider, MODEL, ASK)


@pytest.mark.faults
async def test_closing_the_iterator_closes_the_connection() -> None:
    """The provider sees at once that nobody listens any more."""
    async with (
        ScriptedModelServer([Turn(TEXT, fault="stall_midway")]) as server,
        OpenAICompatible(SystemClock()) as upstream,
    ):
        provider = Provider(ProviderName("acme"), server.base_url)
        async with aclosing(upstream.stream(provider, MODEL, STREAM)) as chunks:
            await anext(chunks)
        await asyncio.wait_for(server.requests[0].closed.wait(), 1)


@pytest.mark.cases
async def test_cancelling_a_whole_request_closes_the_connection() -> None:
    """A caller who leaves stops the provider's work."""
    async with (
        ScriptedModelServer([Turn(fault="stall")]) as server,
        OpenAICompatible(SystemClock()) as upstream,
    ):
        provider = Provider(ProviderName("acme"), server.base_url)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(upstream.complete(provider, MODEL, ASK), 0.1)
        await asyncio.wait_for(server.requests[0].closed.wait(), 1)


async def test_the_key_is_sent_as_a_bearer_token_or_not_at_all() -> None:
    """No key, no header."""
    async with (
        ScriptedModelServer([Turn("a"), Turn("b")]) as server,
        OpenAICompatible(SystemClock()) as upstream,
    ):
        provider = Provider(ProviderName("acme"), server.base_url)
        await upstream.complete(provider, MODEL, ASK)
        await upstream.complete(replace(provider, api_key="sk-1"), MODEL, ASK)
        sent = [request.headers.get("authorization") for request in server.requests]
    assert sent == [None, "Bearer sk-1"]


async def test_the_models_of_a_provider_are_listed() -> None:
    """Names come in the provider's order."""
    async with (
        ScriptedModelServer([], models=["b", "a"]) as server,
        OpenAICompatible(SystemClock()) as upstream,
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
        OpenAICompatible(SystemClock()) as upstream,
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
        OpenAICompatible(SystemClock()) as upstream,
    ):
        assert await upstream.models(Provider(ProviderName("x"), server.base_url)) == ("m",)
