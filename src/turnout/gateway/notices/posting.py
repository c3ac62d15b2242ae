"""Posting to addresses that people name, without becoming a way into our own network."""

import asyncio
import socket
from collections.abc import Mapping
from ipaddress import ip_address
from types import TracebackType
from typing import Final, Protocol, Self
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from turnout.core.network.addresses import admitted
from turnout.errors import UsageError

__all__ = ["HttpPoster", "NotTakenError", "Poster", "check_url"]

_LONGEST_URL: Final = 2_048
_TIMEOUT: Final = aiohttp.ClientTimeout(total=15.0, sock_connect=5.0)
_CONNECTIONS: Final = 16


class NotTakenError(Exception):
    """A message was not taken; the text says why, and names no address."""


class Poster(Protocol):
    """Sends one message to one address."""

    async def post(
        self, url: str, headers: Mapping[str, str], body: bytes, *, allow_private: bool
    ) -> None:
        """Return once the receiver has answered 2xx; `NotTakenError` where it does not."""
        ...


def check_url(url: str, *, allow_private: bool) -> None:
    """Refuse (`UsageError`) what no message may be sent to, as far as its text shows."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        host.encode("idna")
    except ValueError:
        parts, host, port = urlsplit(""), "", None
    schemes = {"https", "http"} if allow_private else {"https"}
    if not host or parts.scheme not in schemes or port == 0 or len(url) > _LONGEST_URL:
        raise UsageError(
            "That is no address that a webhook can have.",
            mend="Give an https address; http is for private networks, with `--allow-private` "
            "(`allow_private` over HTTP).",
        )
    if not url.isascii() or not url.isprintable() or " " in url or parts.username is not None:
        raise UsageError("The address of a webhook may hold no user and no unusual characters.")
    _check_literal(host, allow_private=allow_private)


def _check_literal(host: str, *, allow_private: bool) -> None:
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return
    if not admitted([address], private=allow_private):
        raise UsageError(
            f"{host} is not a public address.",
            mend="On a private network of yours, allow it with `--allow-private` (`allow_private` "
            "over HTTP).",
        )


class HttpPoster:
    """Posts over connections of its own: no proxy, no redirects, no cookies, bounded in time."""

    def __init__(self) -> None:
        self._sessions: dict[bool, aiohttp.ClientSession] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def post(
        self, url: str, headers: Mapping[str, str], body: bytes, *, allow_private: bool
    ) -> None:
        """Return once the receiver has answered 2xx; `NotTakenError` where it does not."""
        try:
            check_url(url, allow_private=allow_private)
            status = await self._send(url, headers, body, allow_private=allow_private)
        except UsageError as error:
            raise NotTakenError(error.message) from None
        except TimeoutError:
            raise NotTakenError("it did not answer in time") from None
        except aiohttp.ClientError as error:
            raise NotTakenError(_reason(error)) from None
        except OSError:
            raise NotTakenError("the connection broke") from None
        if not 200 <= status < 300:
            raise NotTakenError(f"it answered {status}")

    async def close(self) -> None:
        """Close every connection."""
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()

    async def _send(
        self, url: str, headers: Mapping[str, str], body: bytes, *, allow_private: bool
    ) -> int:
        session = self._session(allow_private=allow_private)
        async with session.post(
            url, data=body, headers=headers, allow_redirects=False, timeout=_TIMEOUT
        ) as answer:
            # What a receiver says beside its status is nothing to us.
            answer.close()
            return answer.status

    def _session(self, *, allow_private: bool) -> aiohttp.ClientSession:
        if allow_private not in self._sessions:
            connector = aiohttp.TCPConnector(
                resolver=_Guarded(allow_private=allow_private),
                limit=_CONNECTIONS,
                use_dns_cache=False,
            )
            self._sessions[allow_private] = aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
            )
        return self._sessions[allow_private]


class _Guarded(AbstractResolver):
    """Gives away only those addresses of a name that may be connected to."""

    def __init__(self, *, allow_private: bool) -> None:
        self._allow_private = allow_private
        self._resolver = aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        async with asyncio.timeout(_TIMEOUT.sock_connect):
            found = await self._resolver.resolve(host, port, family)
        usable = [one for one in found if self._admits(one["host"])]
        if not usable:
            raise OSError(None, "its address is not a public one")
        return usable

    async def close(self) -> None:
        await self._resolver.close()

    def _admits(self, text: str) -> bool:
        address = ip_address(text.partition("%")[0])
        return bool(admitted([address], private=self._allow_private))


def _reason(error: aiohttp.ClientError) -> str:
    """Return why, without the address that the error's own text may name."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        said = error.os_error.strerror or ""
        return said if "public" in said else "its name does not resolve"
    if isinstance(error, aiohttp.InvalidURL):
        return "its address cannot be used"
    if isinstance(error, aiohttp.ClientSSLError):
        return "its certificate does not hold"
    if isinstance(error, aiohttp.ClientConnectorError):
        return "it refused the connection"
    return "the connection broke"
