"""Streamable HTTP to a server that nobody vouches for: bounded, and never led elsewhere."""

import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

import httpx2
from mcp.client.streamable_http import streamable_http_client

from turnout.core.govern.connections import Connection

__all__ = ["UNREACHED", "over_http"]

UNREACHED: Final = -32050
"""Code of the error that stands for a request which never got to the server."""

_LARGEST_ANSWER: Final = 8 * 2**20
_CONNECT_SECONDS: Final = 10.0
_MOST_SOCKETS: Final = 64


def over_http(connection: Connection) -> AbstractAsyncContextManager[Any]:
    """Return the transport to the address of a connection."""
    return _open(connection)


@asynccontextmanager
async def _open(connection: Connection) -> AsyncIterator[Any]:
    async with (
        httpx2.AsyncClient(
            headers={**connection.headers, "accept-encoding": "identity"},
            timeout=httpx2.Timeout(connection.timeout, connect=_CONNECT_SECONDS),
            transport=_Bounded(connection),
            trust_env=False,
        ) as client,
        streamable_http_client(connection.url, http_client=client) as streams,
    ):
        yield streams


class _Bounded(httpx2.AsyncBaseTransport):
    """Turns what goes wrong on the way into an answer.

    The SDK gives up the whole connection, with every call under way, where a request raises; an
    error answer ends that request alone.
    """

    def __init__(self, connection: Connection) -> None:
        limits = httpx2.Limits(max_connections=_MOST_SOCKETS, keepalive_expiry=30.0)
        self._wire = httpx2.AsyncHTTPTransport(limits=limits, trust_env=False)
        self._timeout = connection.timeout

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            answer = await self._wire.handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout):
            return _failed(request, UNREACHED, "cannot be reached")
        except httpx2.TimeoutException:
            return _failed(request, -32001, f"did not answer within {self._timeout:g} s")
        except httpx2.TransportError:
            return _failed(request, -32000, "closed the connection before it answered")
        if answer.status_code in {401, 403} or answer.status_code >= 500:
            await answer.aclose()
            return _failed(request, -32603, f"answered with status {answer.status_code}")
        if answer.headers.get("content-encoding", "identity") != "identity":
            await answer.aclose()
            return _failed(request, -32000, "compressed its answer, which was not asked for")
        if not isinstance(answer.stream, httpx2.AsyncByteStream):
            return answer
        stream = _BoundedStream(answer.stream)
        return httpx2.Response(
            answer.status_code,
            headers=answer.headers,
            stream=stream,
            request=request,
            extensions=answer.extensions,
        )

    async def aclose(self) -> None:
        await self._wire.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    """The bytes of an answer, up to a limit."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for part in self._stream:
                size += len(part)
                if size > _LARGEST_ANSWER:
                    raise httpx2.StreamError(f"more than {_LARGEST_ANSWER // 2**20} MiB came")
                yield part
        except httpx2.TransportError as error:
            raise httpx2.StreamError("the answer broke off") from error

    async def aclose(self) -> None:
        await self._stream.aclose()


def _failed(request: httpx2.Request, code: int, what: str) -> httpx2.Response:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": what}}
    return httpx2.Response(
        503,
        headers={"content-type": "application/json"},
        content=json.dumps(error),
        request=request,
    )
