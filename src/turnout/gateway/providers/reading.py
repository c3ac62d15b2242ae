"""Bodies of upstreams, read within bounds."""

from collections.abc import AsyncGenerator, Iterator

import aiohttp
import orjson

from turnout.core.json import JsonObject, TooDeepError, read_json
from turnout.gateway.catalog import Provider
from turnout.gateway.exchange import ServerEvent
from turnout.gateway.providers.accounts.event_stream import CONTENT_TYPE as FRAMED
from turnout.gateway.providers.accounts.event_stream import EventStreamDecoder
from turnout.gateway.providers.failures import unreadable, without_key
from turnout.gateway.providers.sse import EventTooLargeError, RawEvent, SseDecoder

__all__ = ["DONE", "decode_whole", "events", "parse_object", "read_body"]

DONE = "[DONE]"
"""What ends a stream of OpenAI's shapes; it is no event."""

_LARGEST_STREAM = 128 * 2**20
"""Bytes; events weigh a hundred times what they say."""
_SSE_STARTS = (b"data:", b"event:", b"id:", b":")


async def read_body(answer: aiohttp.ClientResponse, cap: int, *, truncate: bool = False) -> bytes:
    """Return a body of at most `cap` bytes; a larger one is cut or an `UpstreamError`."""
    parts: list[bytes] = []
    size = 0
    async for part in answer.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > cap:
            if truncate:
                break
            raise unreadable(f"sent more than {cap // 2**20} MiB")
    return parts[0][:cap] if len(parts) == 1 else b"".join(parts)[:cap]


def parse_object(raw: bytes | str) -> JsonObject:
    """Return a JSON object; `UpstreamError` where it is anything else."""
    try:
        parsed = read_json(raw)
    except TooDeepError as error:
        raise unreadable(f"sent JSON that {error.msg}") from error
    except orjson.JSONDecodeError as error:
        page = raw.lstrip()[:1] in {b"<", "<"}
        what = "a page of HTML; is its base URL right?" if page else "something that is no JSON"
        raise unreadable(f"sent {what}") from error
    if not isinstance(parsed, dict):
        raise unreadable("sent JSON that is no object")
    return parsed


async def events(
    answer: aiohttp.ClientResponse, provider: Provider
) -> AsyncGenerator[ServerEvent, None]:
    """Yield the events of a stream up to its end or `[DONE]`."""
    if answer.content_type == FRAMED:
        async for framed in _framed(answer):
            yield framed
        return
    decoder, size = SseDecoder(), 0
    try:
        async for data in answer.content.iter_any():
            size += len(data)
            if size > _LARGEST_STREAM:
                raise unreadable(f"sent more than {_LARGEST_STREAM // 2**20} MiB")
            for event in decoder.feed(data):
                if event.data == DONE:
                    return
                yield _parsed(event, provider)
    except EventTooLargeError as error:
        raise unreadable("sent an event larger than any answer") from error
    last = decoder.close()
    if last is not None and last.data != DONE:
        yield _parsed(last, provider)


async def _framed(answer: aiohttp.ClientResponse) -> AsyncGenerator[ServerEvent, None]:
    decoder = EventStreamDecoder()
    async for data in answer.content.iter_any():
        for event in decoder.feed(data):
            yield event
    decoder.close()


def decode_whole(raw: bytes, provider: Provider) -> Iterator[ServerEvent]:
    """Yield the events of an answer that is not declared as a stream.

    A stream under a wrong name is read as one; a JSON object is the only event.
    """
    if not raw.lstrip().startswith(_SSE_STARTS):
        yield ServerEvent("", parse_object(without_key(raw, provider)))
        return
    decoder = SseDecoder()
    try:
        found = [*decoder.feed(raw), decoder.close()]
    except EventTooLargeError as error:
        raise unreadable("sent an event larger than any answer") from error
    for event in found:
        if event is None or event.data == DONE:
            return
        yield _parsed(event, provider)


def _parsed(event: RawEvent, provider: Provider) -> ServerEvent:
    data: bytes | str = event.data
    # Only errors quote what was sent with the request.
    if '"error"' in event.data:
        data = without_key(event.data.encode(), provider)
    return ServerEvent(event.name, parse_object(data))
