"""JSON as models write it."""

import json
import re
from typing import NoReturn

from turnout.core.json import JsonValue

__all__ = ["decode"]

_TRAILING_COMMA = re.compile(r'("(?:[^"\\]|\\.)*(?:"|\Z))|,(?=\s*[}\]])', re.DOTALL)


def decode(text: str) -> JsonValue:
    """Return what a text says; `ValueError` where that is not certain.

    Mended are raw line breaks in strings, trailing commas and surplus closing brackets. JSON that
    ends too early is never completed.
    """
    try:
        return _exactly(text)
    except ValueError as error:
        mended = _TRAILING_COMMA.sub(lambda found: found[1] or "", text)
        try:
            return _exactly(mended)
        except ValueError:
            raise error from None


def _exactly(text: str) -> JsonValue:
    # Not strict: raw line breaks within strings are accepted.
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=_object, parse_constant=_no_number)
    decoded: tuple[JsonValue, int] = decoder.raw_decode(text)
    value, end = decoded
    if text[end:].strip(" \t\r\n}]"):
        raise json.JSONDecodeError("Extra data", text, end)
    return value


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    fields: dict[str, JsonValue] = {}
    for name, value in pairs:
        if fields.setdefault(name, value) != value:
            raise ValueError(f"`{name}` is given twice with different values")
    return fields


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
