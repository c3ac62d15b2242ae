"""A service that is somewhere else, over its API."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

import aiohttp
import orjson

from turnout.core.events import Entry, decode_event
from turnout.core.ids import RunId
from turnout.core.json import JsonObject, JsonValue, as_object, as_objects, as_text, read_json
from turnout.core.service.options import ServiceAddress
from turnout.errors import (
    ConflictError,
    GatewayError,
    NotFoundError,
    RepositoryError,
    TurnoutError,
    UsageError,
)

__all__ = ["RunsClient", "ServiceClient"]

_LARGEST: Final = 256 << 20
_LINE: Final = 64 << 20
"""Bytes of one event: results of tools are bounded, diffs are large at times."""
_PAGE: Final = 500
_SILENCE: Final = 60.0
"""Seconds without even a keep-alive after which a stream is opened anew."""
_TRIES: Final = 8
"""Times in a row that a stream may break, or cannot be opened, before it is given up."""
_PAUSE: Final = 0.25
_CONNECT: Final = 10.0
_PLACE: Final = frozenset({"repo", "base", "head"})
"""Fields of an order that say where it is to be worked on."""


class ServiceClient:
    """Asks the service about one kind of thing; errors are those that it answers with.

    Open inside `async with`.
    """

    def __init__(self, address: ServiceAddress, noun: str) -> None:
        """`noun`: the path of what is asked about, below `/v1`."""
        self._base = address.base_url.rstrip("/")
        self._url = f"{self._base}/v1/{noun}"
        self._headers = {"authorization": f"Bearer {address.key}"} if address.key else {}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=_LINE,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT, sock_read=_SILENCE),
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def _json(self, method: str, path: str, **options: Any) -> JsonObject:
        url = f"{self._url}{path}"
        try:
            async with self._open.request(method, url, allow_redirects=False, **options) as answer:
                body = await _body(answer)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _unreachable(self._base) from error
        if answer.status not in {200, 201}:
            raise _refused(answer, body)
        return _object(body)

    @property
    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("It is used inside `async with`.")
        return self._session


class RunsClient(ServiceClient):
    """Asks about runs."""

    def __init__(self, address: ServiceAddress) -> None:
        super().__init__(address, "runs")

    async def order(self, body: JsonObject, *, once: str | None = None) -> JsonObject:
        """Order a run and return it."""
        headers = {} if once is None else {"idempotency-key": once}
        return await self._json("POST", "", json=body, headers=headers)

    async def page(self, asked: Mapping[str, str | int]) -> JsonObject:
        """Return a page of runs, newest first."""
        return await self._json("GET", "", params=asked)

    async def read(self, run_id: str) -> JsonObject:
        """Return a run with what its record amounts to."""
        return await self._json("GET", f"/{quote(run_id, safe='')}")

    async def spend(self, run_id: str) -> JsonObject:
        """Return what a run cost, by its record and by the gateway's receipts."""
        return await self._json("GET", f"/{quote(run_id, safe='')}/spend")

    async def act(self, run_id: str, verb: str, body: JsonObject | None = None) -> JsonObject:
        """Cancel, retry, approve, reject or reconcile, and return what is answered."""
        return await self._json("POST", f"/{quote(run_id, safe='')}/{verb}", json=body or {})

    async def entries(self, run_id: str) -> Sequence[Entry]:
        """Return the whole record of a run so far."""
        found: list[Entry] = []
        after: JsonValue = 0
        while isinstance(after, int):
            path = f"/{quote(run_id, safe='')}/record"
            part = await self._json("GET", path, params={"after": after, "limit": _PAGE})
            found += [_entry(run_id, one) for one in as_objects(part.get("entries"))]
            after = part.get("next_after")
        return found

    async def follow(self, run_id: str, *, after: int = 0) -> AsyncGenerator[Entry, None]:
        """Yield entries as they are committed until the run has ended, over broken connections."""
        broken = 0
        while broken < _TRIES:
            try:
                async with self._stream(run_id, after) as answer:
                    if answer.status == HTTPStatus.NO_CONTENT:
                        return
                    async for entry in _entries(run_id, answer):
                        after, broken = entry.seq, 0
                        yield entry
                broken += 1
            except (aiohttp.ClientError, TimeoutError):
                broken += 1
            except GatewayError as error:
                if error.retry_after is None:
                    raise
                broken += 1
            await asyncio.sleep(_PAUSE * broken)
        raise _unreachable(self._base)

    @asynccontextmanager
    async def _stream(self, run_id: str, after: int) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = {"last-event-id": str(after), "accept": "text/event-stream"}
        url = f"{self._url}/{quote(run_id, safe='')}/events"
        async with self._open.get(url, headers=headers, allow_redirects=False) as answer:
            if answer.status not in {200, 204}:
                raise _refused(answer, await _body(answer))
            yield answer


async def _entries(run_id: str, answer: aiohttp.ClientResponse) -> AsyncIterator[Entry]:
    async for line in answer.content:
        name, _, value = line.partition(b": ")
        if name == b"data":
            found = _object(value)
            if "event" in found:
                yield _entry(run_id, found)


async def _body(answer: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in answer.content.iter_chunked(1 << 16):
        body += chunk
        if len(body) > _LARGEST:
            raise _odd("its answer is larger than 256 MiB")
    return bytes(body)


def _object(body: bytes) -> JsonObject:
    try:
        return as_object(read_json(body))
    except orjson.JSONDecodeError as error:
        raise _odd("its answer is no JSON") from error


def _entry(run_id: str, shown: JsonObject) -> Entry:
    seq, event = shown.get("seq"), shown.get("event")
    try:
        at = datetime.fromisoformat(as_text(shown.get("at")))
        if not isinstance(seq, int):
            raise _odd("an entry has no place")
        return Entry(RunId(run_id), seq, at, decode_event(orjson.dumps(event)))
    except ValueError as error:
        raise _odd(f"an entry cannot be read: {error}") from error


def _refused(answer: aiohttp.ClientResponse, body: bytes) -> TurnoutError:
    """Return the error that the service answered with, as it would be raised here."""
    try:
        said = as_object(as_object(read_json(body)).get("error"))
    except orjson.JSONDecodeError:
        said = {}
    message = as_text(said.get("message")) or f"The service answered {answer.status}."
    match answer.status:
        case 400 if said.get("param") in _PLACE:
            return RepositoryError(message)
        case 400:
            return UsageError(message)
        case 404 if said:
            return NotFoundError(message)
        case 409:
            return ConflictError(message)
        case _:
            after = answer.headers.get("retry-after", "")
            return GatewayError(
                message,
                status=answer.status,
                code=as_text(said.get("code")) or "no_service",
                retry_after=float(after) if after.isdecimal() else None,
                mend=_mend_of(answer.status, known=bool(said)),
            )


def _mend_of(status: int, *, known: bool) -> str:
    if not known:
        return "Is that the address of `turnout serve`?"
    if status == HTTPStatus.UNAUTHORIZED:
        return "The key that is sent is that of the variable TURNOUT_API_KEY."
    return ""


def _unreachable(url: str) -> GatewayError:
    return GatewayError(
        f"The service at {url} cannot be reached.",
        status=503,
        code="unreachable",
        mend="Start it with `turnout serve`, or name another with --server or TURNOUT_SERVER.",
    )


def _odd(what: str) -> GatewayError:
    return GatewayError(f"The service answered oddly: {what}.", status=502, code="invalid_reply")
