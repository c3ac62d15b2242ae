"""The file from the model hub, continued where an earlier try ended."""

import os
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from turnout.core.clock import Clock
from turnout.localmodel.place import CHUNK, Place, Progress

__all__ = ["HUB", "download"]

HUB: Final = "https://huggingface.co"

_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=20, sock_read=60)
_IDLE_TRIES: Final = 3
"""Connections in a row that may end having brought next to nothing."""


async def download(place: Place, progress: Progress, *, hub: str, clock: Clock) -> None:
    """Bring the part to the full size; `ModelUnavailableError` where it cannot be had.

    A connection that is cut is made again from where it was cut, and so is the next call.
    """
    model = place.model
    url = f"{hub}/{model.repository}/resolve/{model.revision}/{model.file}"
    idle = 0
    async with aiohttp.ClientSession(timeout=_TIMEOUT, trust_env=True) as session:
        while (had := _size(place.part)) < model.size:
            place.make_room()
            why = await _try_once(session, url, place, progress)
            idle = 0 if _size(place.part) - had >= CHUNK else idle + 1
            if why and idle >= _IDLE_TRIES:
                raise place.unavailable(f"{why}{_kept(place.part)}")
            if why:
                await clock.sleep(2.0**idle)


async def _try_once(
    session: aiohttp.ClientSession, url: str, place: Place, progress: Progress
) -> str:
    """Fetch what is missing; return why it ended early, empty where it did not."""
    have = _size(place.part)
    headers = {"Range": f"bytes={have}-"} if have else {}
    try:
        async with session.get(url, headers=headers) as response:
            _check(response, place, have)
            with place.writing(resume=response.status == HTTPStatus.PARTIAL_CONTENT) as file:
                have = file.tell()
                async for chunk in response.content.iter_chunked(CHUNK):
                    have += len(chunk)
                    if have > place.model.size:
                        raise place.unavailable(f"{url} sends more than it should.")
                    file.write(chunk)
                    progress(have)
    except (aiohttp.ClientError, TimeoutError) as error:
        return f"the connection to {urlsplit(url).hostname} failed ({_what_broke(error)})."
    return "" if have == place.model.size else f"{url} ended after {have:,} bytes."


def _check(response: aiohttp.ClientResponse, place: Place, have: int) -> None:
    """Refuse an answer that is not the rest of the file."""
    model, status = place.model, response.status
    if status in {408, 429} or status >= 500:
        response.raise_for_status()
    if status not in {HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT}:
        raise place.unavailable(f"{response.url} answered {status} {response.reason}.")
    rest = model.size - (have if status == HTTPStatus.PARTIAL_CONTENT else 0)
    length = response.content_length
    if length is not None and length != rest:
        why = f"{response.url} offers {length:,} bytes where {rest:,} were expected."
        raise place.unavailable(why)


def _what_broke(error: aiohttp.ClientError | TimeoutError) -> str:
    match error:
        case aiohttp.ClientResponseError():
            return f"it answered {error.status}"
        case aiohttp.ClientConnectorDNSError():
            return "its name does not resolve"
        case aiohttp.ClientConnectorError():
            code = error.os_error.errno
            return os.strerror(code).lower() if code else "network error"
        case TimeoutError():
            return "nothing came for too long"
        case _:
            return "it broke off"


def _kept(part: Path) -> str:
    size = _size(part)
    return f" The {size:,} bytes that came are kept; the next try continues them." if size else ""


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
