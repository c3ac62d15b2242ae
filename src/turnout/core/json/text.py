"""JSON text: read from strangers, and for the record written in plain ASCII."""

import json
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime

import orjson

from turnout.core.json.values import JsonValue

__all__ = [
    "DEEPEST",
    "TooDeepError",
    "ascii_json",
    "doubled_name",
    "encode_values",
    "read_json",
]

DEEPEST = 200
"""Levels that JSON of strangers may nest."""

_ROOM = 254 - DEEPEST
"""Levels more that can be written: what was read is sent on inside of other values."""


class TooDeepError(orjson.JSONDecodeError):
    """JSON nests so deep that it could be read, but not be written into another value."""


def read_json(raw: bytes | str) -> JsonValue:
    """Return what JSON of strangers says; `orjson.JSONDecodeError` where it is none.

    `TooDeepError`, which is one too, where it nests deeper than `DEEPEST` levels.
    """
    value: JsonValue = orjson.loads(raw)
    opened = (
        raw.count("[") + raw.count("{")
        if isinstance(raw, str)
        else raw.count(b"[") + raw.count(b"{")
    )
    if opened > DEEPEST:
        _check_depth(value)
    return value


class _DoubledError(Exception):
    """An object has a name twice; it is the argument."""


def doubled_name(raw: bytes | str) -> str | None:
    """Return a name that one object of JSON has twice, of which readers may take either value.

    None where there is none, or where it is no JSON at all.
    """
    try:
        json.loads(raw, object_pairs_hook=_told_apart)
    except _DoubledError as error:
        return str(error)
    except (ValueError, RecursionError):
        return None
    return None


def _told_apart(pairs: list[tuple[str, object]]) -> None:
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise _DoubledError(name)
        seen.add(name)


def _check_depth(value: JsonValue) -> None:
    inside = value
    for _ in range(_ROOM):
        inside = [inside]
    try:
        orjson.dumps(inside)
    except orjson.JSONEncodeError as error:
        raise TooDeepError(f"nests deeper than {DEEPEST} levels", "", 0) from error


def ascii_json(value: object) -> str:
    """Return plain values as compact JSON in ASCII.

    A NUL, a lone surrogate (from a file name that is no UTF-8) and every other character beyond
    ASCII is an escape, so that any database keeps the text. A high surrogate right before a low
    one comes back as the one character that they spell. An infinite or undefined float is
    written `Infinity` or `NaN`.
    """
    # pydantic's own JSON writer refuses lone surrogates and turns an infinite float into null.
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def encode_values(value: object) -> str:
    """Return frozen values, dataclasses and aware moments among them, as `ascii_json` would.

    It is several times as fast where all text is ASCII. Floats must be finite.
    """
    try:
        encoded = orjson.dumps(value, option=orjson.OPT_UTC_Z)
    except orjson.JSONEncodeError:
        # A lone surrogate, or a number that 64 bits cannot hold.
        return json.dumps(value, ensure_ascii=True, separators=(",", ":"), default=_plain)
    if encoded.isascii():
        return encoded.decode("ascii")
    return ascii_json(orjson.loads(encoded))


def _plain(value: object) -> object:
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, frozenset | set):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")
