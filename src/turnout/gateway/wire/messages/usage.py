"""Token counts in the messages shape, whose input leaves out what a cache read or wrote."""

from collections.abc import Mapping

from turnout.core.json import JsonObject, JsonValue
from turnout.core.usage import Usage

__all__ = ["merge_counts", "read_usage", "write_usage"]

_MOST_TOKENS = 10**9
"""A count above it is nonsense, not usage."""


def read_usage(counts: JsonValue) -> Usage | None:
    """Return the counts of a `usage` object; None where it holds none."""
    if not isinstance(counts, Mapping):
        return None
    fresh, generated = _count(counts, "input_tokens"), _count(counts, "output_tokens")
    if fresh is None and generated is None:
        return None
    read = _count(counts, "cache_read_input_tokens") or 0
    written = _count(counts, "cache_creation_input_tokens") or 0
    return Usage(
        input_tokens=(fresh or 0) + read + written,
        output_tokens=generated or 0,
        cache_read_input_tokens=read,
        cache_creation_input_tokens=written,
    )


def write_usage(usage: Usage) -> dict[str, JsonValue]:
    """Return `usage` as a `usage` object."""
    read, written = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
    return {
        "input_tokens": max(0, usage.input_tokens - read - written),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": usage.output_tokens,
    }


def merge_counts(before: JsonObject, later: JsonObject) -> dict[str, JsonValue]:
    """Return counts with later totals in place of earlier ones; null says nothing."""
    return {**before, **{name: value for name, value in later.items() if value is not None}}


def _count(owner: JsonObject, name: str) -> int | None:
    value = owner.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= _MOST_TOKENS else None
