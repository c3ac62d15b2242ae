"""The file from the model hub, continued where an earlier try ended."""

from http import HTTPStatus
from pathlib import Path
from typing import Final

import aiohttp

from turnout.core.clock import Clock
from turnout.localmodel.place import CHUNK, Place, Progress, unavailable

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
                raise unavailable(model, f"{why} What came is kept; the next try continues it.")
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
                        raise unavailable(place.model, f"{url} sends more than it should.")
                    file.write(chunk)
                    progress(have)
    except (aiohttp.ClientError, TimeoutError) as error:
        return f"the connection to {url} failed: {str(error) or type(error).__name__}."
    return "" if have == place.model.size else f"{url} ended after {have:,} bytes."


def _check(response: aiohttp.ClientResponse, place: Place, have: int) -> None:
    """Refuse an answer that is not the rest of the file."""
    model, status = place.model, response.status
    if status in {408, 429} or status >= 500:
        response.raise_for_status()
    if status not in {HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT}:
        raise unavailable(model, f"{response.url} answered {status} {response.reason}.")
    rest = model.size - (have if status == HTTPStatus.PARTIAL_CONTENT else 0)
    length = response.content_length
    if length is not None and length != rest:
        why = f"{response.url} offers {length:,} bytes where {rest:,} were expected."
        raise unavailable(model, why)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
