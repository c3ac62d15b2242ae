"""Telling a content filter's refusal from other errors."""

import orjson

from turnout.core.json import JsonObject, as_object, as_text
from turnout.gateway.exchange import UpstreamError

__all__ = ["is_refusal"]

_REFUSES = frozenset({400, 403, 422, 451})
_SIGNS = (
    "content_filter",
    "content_policy",
    "data_inspection_failed",
    "datainspectionfailed",
    "moderation",
    "responsibleaipolicyviolation",
    "safety",
)
"""Parts of the codes by which providers name their filters, in lower case."""


def is_refusal(error: UpstreamError) -> bool:
    """Return whether a filter refused what the prompt says, by the error's codes alone."""
    if error.status not in _REFUSES or error.body is None:
        return False
    try:
        said = as_object(as_object(orjson.loads(error.body)).get("error"))
    except orjson.JSONDecodeError:
        return False
    return any(sign in code for code in _codes(said) for sign in _SIGNS) or _is_flagged(said)


def _codes(said: JsonObject) -> list[str]:
    inner = as_object(said.get("innererror"))
    named = (said.get("code"), said.get("type"), inner.get("code"))
    return [as_text(name).lower() for name in named]


def _is_flagged(said: JsonObject) -> bool:
    """Return whether a router says which of its moderation's categories a prompt fell into."""
    return bool(as_object(said.get("metadata")).get("flagged_input"))
