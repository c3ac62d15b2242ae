"""Server-sent events as they are written."""

import orjson

from turnout.core.json import JsonObject

__all__ = ["KEEP_ALIVE", "data_event", "named_event", "raw_event"]

KEEP_ALIVE = b": keep-alive\n\n"
"""A comment that clients skip, for connections that close when nothing moves."""


def data_event(value: JsonObject) -> bytes:
    """Return an event without a name."""
    return b"data: " + orjson.dumps(value) + b"\n\n"


def named_event(name: str, value: JsonObject) -> bytes:
    """Return an event with a name."""
    return b"event: " + name.encode() + b"\ndata: " + orjson.dumps(value) + b"\n\n"


def raw_event(body: bytes) -> bytes:
    """Return bytes that another server wrote as an event without a name."""
    lines = body.splitlines() or [b""]
    return b"".join(b"data: " + line + b"\n" for line in lines) + b"\n"
