"""The upstream that speaks OpenAI's chat completions, over aiohttp."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, aclosing
from types import TracebackType
from typing import Self

import aiohttp
import orjson

from turnout.core.clock import Clock
from turnout.core.json import JsonObject, as_objects, as_text
from turnout.gateway.catalog import Deployment, Provider
from turnout.gateway.exchange import UpstreamError, UpstreamReply
from turnout.gateway.providers.failures import (
    from_body,
    from_client_error,
    from_status,
    unreadable,
)
from turnout.gateway.providers.sse import EventTooLargeError, ServerEvent, SseDecoder

__all__ = ["OpenAICompatible"]

_LARGEST_BODY = 32 * 2**20
_LARGEST_ERROR = 64 * 2**10
_LONGEST_EXCHANGE = 3_600.0
_LONGEST_LISTING = 60.0
_KEEP_ALIVE = 4.0
"""Seconds; below the five after which common servers close an idle connection."""
_LINGER = 0.05
"""Seconds that the end of a body may take after `[DONE]` before its connection is given up."""


class OpenAICompatible:
    """An `Upstream`; use it inside `async with`, or `close` it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def complete(
        self, provider: Provider, deployment: Deployment, body: JsonObject
    ) -> UpstreamReply:
        """Send a request that is not streamed; `UpstreamError` where it was not answered."""
        began = self._clock.monotonic()
        try:
            async with self._post(provider, body, "application/json") as answer:
                await self._check_status(answer, provider)
                raw = await _read(answer, _LARGEST_BODY)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise from_client_error(error, provider) from error
        parsed = _parse(raw)
        if parsed.get("error"):
            raise from_body(parsed, provider)
        if not as_objects(parsed.get("choices")):
            raise unreadable(f"answered for {deployment.upstream_name} without a choice")
        return UpstreamReply(parsed, round((self._clock.monotonic() - began) * 1000))

    async def stream(
        self, provider: Provider, deployment: Deployment, body: JsonObject
    ) -> AsyncGenerator[JsonObject, None]:
        """Yield the chunks of a streamed request, `[DONE]` left out.

        A stream counts as whole once a choice has its finish reason, whatever follows; one that
        ends before that is an `UpstreamError`.
        """
        finished = False
        try:
            async with self._post(provider, body, "text/event-stream") as answer:
                await self._check_status(answer, provider)
                if answer.content_type in {"application/json", "text/html"}:
                    raise await _not_a_stream(answer, provider)
                async with aclosing(_chunks(answer, provider)) as chunks:
                    async for chunk in chunks:
                        finished = finished or _finishes(chunk)
                        yield chunk
        except (aiohttp.ClientError, TimeoutError) as error:
            if not finished:
                raise from_client_error(error, provider) from error
        if not finished:
            raise unreadable(f"ended the answer of {deployment.upstream_name} midway")

    async def models(self, provider: Provider) -> tuple[str, ...]:
        """Return the names of the models that the provider lists; `UpstreamError` if none."""
        url = f"{provider.base_url.rstrip('/')}/models"
        patience = min(_LONGEST_LISTING, provider.idle_timeout)
        try:
            async with self._open().get(
                url,
                headers=_headers(provider, "application/json"),
                timeout=aiohttp.ClientTimeout(
                    total=patience, sock_connect=provider.connect_timeout
                ),
                allow_redirects=False,
            ) as answer:
                await self._check_status(answer, provider)
                raw = await _read(answer, _LARGEST_BODY)
        except aiohttp.ConnectionTimeoutError as error:
            raise from_client_error(error, provider) from error
        except TimeoutError as error:
            late = f"did not list its models within {patience:g} s"
            raise unreadable(late) from error
        except aiohttp.ClientError as error:
            raise from_client_error(error, provider) from error
        listed = as_objects(_parse(raw).get("data"))
        names = tuple(name for name in (as_text(m.get("id")) for m in listed) if _is_name(name))
        if not names:
            raise unreadable("lists no models")
        return names

    async def close(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE)
            self._session = aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session

    def _post(
        self, provider: Provider, body: JsonObject, accept: str
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        return self._open().post(
            f"{provider.base_url.rstrip('/')}/chat/completions",
            data=orjson.dumps(body),
            headers=_headers(provider, accept),
            timeout=_timeout(provider),
            # A redirect would carry the key and the prompt to a host that nobody named.
            allow_redirects=False,
        )

    async def _check_status(self, answer: aiohttp.ClientResponse, provider: Provider) -> None:
        if 300 <= answer.status < 400:
            raise unreadable("redirects to another address; use that as its base URL")
        if answer.status >= 400:
            raw = await _read(answer, _LARGEST_ERROR, truncate=True)
            now = self._clock.now()
            raise from_status(answer.status, answer.headers, raw, provider, now)


def _is_name(text: str) -> bool:
    return text.isprintable() and bool(text.strip())


def _headers(provider: Provider, accept: str) -> dict[str, str]:
    headers = {"Accept": accept, "Content-Type": "application/json"}
    if provider.api_key:
        headers["Authorization"] = f"Bearer {provider.api_key}"
    return headers


def _timeout(provider: Provider) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(
        total=_LONGEST_EXCHANGE,
        sock_connect=provider.connect_timeout,
        sock_read=provider.idle_timeout,
    )


async def _read(answer: aiohttp.ClientResponse, cap: int, *, truncate: bool = False) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in answer.content.iter_chunked(2**16):
        parts.append(part)
        size += len(part)
        if size > cap:
            if truncate:
                break
            raise unreadable(f"sent more than {cap // 2**20} MiB")
    return b"".join(parts)[:cap]


def _parse(raw: bytes | str) -> JsonObject:
    try:
        parsed = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        page = raw.lstrip()[:1] in {b"<", "<"}
        what = "a page of HTML; is its base URL right?" if page else "something that is no JSON"
        raise unreadable(f"sent {what}") from error
    if not isinstance(parsed, dict):
        raise unreadable("sent JSON that is no object")
    return parsed


async def _not_a_stream(answer: aiohttp.ClientResponse, provider: Provider) -> UpstreamError:
    body = _parse(await _read(answer, _LARGEST_BODY))
    if body.get("error"):
        return from_body(body, provider)
    return unreadable("did not stream its answer")


async def _chunks(
    answer: aiohttp.ClientResponse, provider: Provider
) -> AsyncGenerator[JsonObject, None]:
    decoder = SseDecoder()
    try:
        async for data in answer.content.iter_any():
            for event in decoder.feed(data):
                if event.data == "[DONE]":
                    await _drain(answer)
                    return
                yield _chunk(event, provider)
    except EventTooLargeError as error:
        raise unreadable("sent an event larger than any answer") from error
    last = decoder.close()
    if last is not None and last.data != "[DONE]":
        yield _chunk(last, provider)


def _chunk(event: ServerEvent, provider: Provider) -> JsonObject:
    chunk = _parse(event.data)
    if chunk.get("error"):
        raise from_body(chunk, provider)
    if event.name == "error":
        raise from_body({"error": chunk}, provider)
    return chunk


def _finishes(chunk: JsonObject) -> bool:
    return any(choice.get("finish_reason") for choice in as_objects(chunk.get("choices")))


async def _drain(answer: aiohttp.ClientResponse) -> None:
    try:
        async with asyncio.timeout(_LINGER):
            await answer.content.readany()
    except TimeoutError:
        answer.close()
