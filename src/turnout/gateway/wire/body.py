"""The body of a request of any shape: read, measured, and what it is about."""

from collections.abc import Iterable

import orjson

from turnout.core.json import DEEPEST, JsonValue, TooDeepError, read_json
from turnout.gateway.wire.fields import invalid

__all__ = ["estimate_tokens", "parse_body", "topic"]

_BYTES_PER_TOKEN = 4
_TOKENS_PER_ATTACHMENT = 1_000
_LOOKED_AT = 1_000
"""Characters at either end of a text that say what a request is about."""


def parse_body(raw: bytes) -> dict[str, JsonValue]:
    """Return the JSON object that `raw` is; `GatewayError` (400) where it is none."""
    try:
        body = read_json(raw)
    except TooDeepError as error:
        raise invalid(f"The body nests deeper than {DEEPEST} levels.", None) from error
    except orjson.JSONDecodeError as error:
        raise invalid(f"The body is not JSON: {error}.", None) from error
    if not isinstance(body, dict):
        raise invalid("The body must be a JSON object.", None)
    return body


def estimate_tokens(size: int, attachments: int) -> int:
    """Return roughly the tokens of `size` bytes, attachments at a flat rate beside them."""
    return max(1, size // _BYTES_PER_TOKEN) + attachments * _TOKENS_PER_ATTACHMENT


def topic(standing: Iterable[str], asked: Iterable[str]) -> str:
    """Return what a request is about: both ends of its instructions and of what was asked."""
    return "\n".join(
        text if len(text) <= 2 * _LOOKED_AT else text[:_LOOKED_AT] + text[-_LOOKED_AT:]
        for texts in (standing, asked)
        for text in texts
    )
