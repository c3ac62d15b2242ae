"""Upstreams of every shape, over aiohttp."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from types import TracebackType
from typing import Self

import aiohttp
import orjson

from turnout.core.clock import Clock
from turnout.core.json import JsonObject, as_objects, as_text
from turnout.gateway.catalog import Provider
from turnout.gateway.dialog.conversation import Shape
from turnout.gateway.exchange import ServerEvent, UpstreamReply
from turnout.gateway.providers.authenticator import Authenticator, Prepared
from turnout.gateway.providers.failures import (
    from_client_error,
    from_status,
    in_band,
    unreadable,
    without_key,
)
from turnout.gateway.providers.reading import decode_whole, events, parse_object, read_body

__all__ = ["HttpUpstream"]

_LARGEST_BODY = 32 * 2**20
_LARGEST_ERROR = 64 * 2**10
_LONGEST_LISTING = 60.0
_KEEP_ALIVE = 4.0
"""Seconds; below the five after which common servers close an idle connection."""
_LINGER = 0.05
"""Seconds that the end of a body may take after the last event before its connection is given
up."""

_VERSIONS: Mapping[Shape, Mapping[str, str]] = {
    "chat": {},
    "messages": {"anthropic-version": "2023-06-01"},
    "responses": {},
}
"""Headers that an API insists on, where the client sends none."""


class HttpUpstream:
    """An `Upstream`; use it inside `async with`, or `close` it."""

    def __init__(
        self,
        clock: Clock,
        accounts: Mapping[str, Authenticator] | None = None,
        *,
        longest: float = 3_600.0,
    ) -> None:
        self._clock = clock
        self._accounts = accounts or {}
        self._longest = longest
        self._session: aiohttp.ClientSession | None = None
        self._timeouts: dict[tuple[float, float], aiohttp.ClientTimeout] = {}
        """By the seconds to wait for a connection and for a byte."""

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
        self, provider: Provider, path: str, body: JsonObject, headers: Mapping[str, str]
    ) -> UpstreamReply:
        """Send a request that is not streamed; `UpstreamError` where it was not answered."""
        began = self._clock.monotonic()
        sent = await self._prepared(provider, path, body, headers, "application/json")
        try:
            async with self._post(provider, sent) as answer:
                await self._check_status(answer, provider)
                raw = await read_body(answer, _LARGEST_BODY)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise from_client_error(error, provider, self._longest) from error
        parsed = parse_object(raw)
        if parsed.get("error"):
            raise in_band(parse_object(without_key(raw, provider)), provider.shape)
        return UpstreamReply(parsed, round((self._clock.monotonic() - began) * 1000))

    async def stream(
        self, provider: Provider, path: str, body: JsonObject, headers: Mapping[str, str]
    ) -> AsyncGenerator[ServerEvent, None]:
        """Yield the events of a streamed request, `[DONE]` left out.

        An answer that is one JSON object instead is the only event, without a name.
        """
        sent = await self._prepared(provider, path, body, headers, "text/event-stream")
        try:
            async with self._post(provider, sent) as answer:
                await self._check_status(answer, provider)
                if answer.content_type in {"application/json", "text/html"}:
                    whole = await read_body(answer, _LARGEST_BODY)
                    for event in decode_whole(whole, provider):
                        yield event
                    return
                async with aclosing(events(answer, provider)) as coming:
                    async for event in coming:
                        yield event
                await _drain(answer)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise from_client_error(error, provider, self._longest) from error

    async def models(self, provider: Provider) -> tuple[str, ...]:
        """Return the names of the models that the provider lists; `UpstreamError` if none."""
        url, headers, _ = await self._opened(
            provider, Prepared(f"{provider.base_url.rstrip('/')}/models", _headers(provider), b"")
        )
        patience = min(_LONGEST_LISTING, provider.idle_timeout)
        try:
            async with self._open().get(
                url,
                headers=headers,
                timeout=aiohttp.ClientTimeout(
                    total=patience, sock_connect=provider.connect_timeout
                ),
                allow_redirects=False,
            ) as answer:
                await self._check_status(answer, provider)
                raw = await read_body(answer, _LARGEST_BODY)
        except aiohttp.ConnectionTimeoutError as error:
            raise from_client_error(error, provider, patience) from error
        except TimeoutError as error:
            late = f"did not list its models within {patience:g} s"
            raise unreadable(late) from error
        except aiohttp.ClientError as error:
            raise from_client_error(error, provider, patience) from error
        listed = as_objects(parse_object(raw).get("data"))
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

    async def _prepared(
        self,
        provider: Provider,
        path: str,
        body: JsonObject,
        headers: Mapping[str, str],
        accept: str,
    ) -> Prepared:
        url = provider.base_url if provider.exact_path else provider.base_url.rstrip("/") + path
        raw = orjson.dumps(body)
        return await self._opened(provider, Prepared(url, _headers(provider, headers, accept), raw))

    async def _opened(self, provider: Provider, sent: Prepared) -> Prepared:
        """Return the request with the provider's key, or as its account wants it."""
        if provider.account is not None:
            account = self._accounts.get(provider.name)
            if account is None:
                raise unreadable(f"needs the adapter for {provider.account.kind} accounts")
            return await account.prepare(provider, *sent)
        if not provider.api_key:
            return sent
        if provider.key_header == "bearer":
            return sent._replace(
                headers={**sent.headers, "authorization": f"Bearer {provider.api_key}"}
            )
        return sent._replace(headers={**sent.headers, provider.key_header: provider.api_key})

    def _post(
        self, provider: Provider, sent: Prepared
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        return self._open().post(
            sent.url,
            data=sent.body,
            headers=sent.headers,
            timeout=self._timeout(provider),
            # A redirect would carry the key and the prompt to a host that nobody named.
            allow_redirects=False,
        )

    def _timeout(self, provider: Provider) -> aiohttp.ClientTimeout:
        waits = provider.connect_timeout, provider.idle_timeout
        known = self._timeouts.get(waits)
        if known is None:
            connect, idle = waits
            known = aiohttp.ClientTimeout(total=self._longest, sock_connect=connect, sock_read=idle)
            self._timeouts[waits] = known
        return known

    async def _check_status(self, answer: aiohttp.ClientResponse, provider: Provider) -> None:
        if 300 <= answer.status < 400:
            raise unreadable("redirects to another address; use that as its base URL")
        if answer.status >= 400:
            raw = await read_body(answer, _LARGEST_ERROR, truncate=True)
            now = self._clock.now()
            raise from_status(answer.status, answer.headers, raw, provider, now)


def _is_name(text: str) -> bool:
    return text.isprintable() and bool(text.strip())


def _headers(
    provider: Provider, passed: Mapping[str, str] | None = None, accept: str = "application/json"
) -> dict[str, str]:
    return {
        **_VERSIONS[provider.shape],
        **(passed or {}),
        **{name.lower(): value for name, value in provider.headers.items()},
        "accept": accept,
        "content-type": "application/json",
    }


async def _drain(answer: aiohttp.ClientResponse) -> None:
    try:
        async with asyncio.timeout(_LINGER):
            await answer.content.readany()
    except TimeoutError:
        answer.close()
