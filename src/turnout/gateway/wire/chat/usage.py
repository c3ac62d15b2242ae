"""Token counts in the chat shape, read and written."""

from turnout.core.json import JsonObject, JsonValue
from turnout.core.usage import Usage

__all__ = ["read_usage", "write_usage"]

_MOST_TOKENS = 10**9
"""A count above it is nonsense, not usage."""


def read_usage(counts: JsonValue) -> Usage | None:
    """Return the counts of a `usage` object; None where it holds none.

    Providers name cached tokens differently; in this shape all of them are part of the prompt.
    """
    if not isinstance(counts, dict):
        return None
    sent, generated = _count(counts, "prompt_tokens"), _count(counts, "completion_tokens")
    if sent is None and generated is None:
        return None
    details = counts.get("prompt_tokens_details")
    details = details if isinstance(details, dict) else {}
    read = _count(details, "cached_tokens")
    if read is None:
        read = _count(counts, "prompt_cache_hit_tokens")
    return Usage(
        input_tokens=sent or 0,
        output_tokens=generated or 0,
        cache_read_input_tokens=min(read or 0, sent or 0),
        cache_creation_input_tokens=_count(details, "cache_write_tokens") or 0,
    )


def write_usage(usage: Usage) -> dict[str, JsonValue]:
    """Return `usage` as a `usage` object."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read_input_tokens,
            "cache_write_tokens": usage.cache_creation_input_tokens,
        },
    }


def _count(owner: JsonObject, name: str) -> int | None:
    value = owner.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not 0 <= value <= _MOST_TOKENS:
        return None
    return int(value)
