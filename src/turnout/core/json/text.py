"""JSON text for the record: plain ASCII, whatever it says."""

import json

__all__ = ["ascii_json"]


def ascii_json(value: object) -> str:
    """Return plain values as compact JSON in ASCII.

    A NUL, a lone surrogate (from a file name that is no UTF-8) and every other character beyond
    ASCII is an escape, so that any database keeps the text. A high surrogate right before a low
    one comes back as the one character that they spell. An infinite or undefined float is
    written `Infinity` or `NaN`.
    """
    # pydantic's own JSON writer refuses lone surrogates and turns an infinite float into null.
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
