"""Why an answer ended, made to agree with what it holds."""

from collections.abc import Mapping
from typing import NamedTuple

from turnout.core.json import JsonValue

__all__ = ["Ended", "agreed", "broke"]

_OTHER_WORDS: Mapping[str, str] = {
    "complete": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "max_tokens": "length",
    "safety": "content_filter",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
}
"""What some servers say in place of the words of the shape; case does not matter."""
_BROKEN = frozenset({"abort", "error", "insufficient_system_resource"})


class Ended(NamedTuple):
    """A finish reason that clients understand."""

    reason: str
    mend: str
    """One phrase where it was mended; else empty."""


def agreed(said: JsonValue, *, called: bool, legacy: bool = False) -> Ended:
    """Return the finish reason of an answer that holds calls, or none.

    `legacy`: the calls have the form that came before `tool_calls`. That an answer ran into its
    limit or into a filter is told even where calls came before.
    """
    word = said if isinstance(said, str) else ""
    reason = _OTHER_WORDS.get(word.lower(), word) or "stop"
    calls = "function_call" if legacy else "tool_calls"
    if called and reason not in {calls, "length", "content_filter"}:
        reason = calls
    elif not called and reason in {"tool_calls", "function_call"}:
        reason = "stop"
    return Ended(reason, "" if reason == said else f"finish reason made {reason}")


def broke(said: JsonValue) -> bool:
    """Return whether a finish reason says that the answer was given up."""
    return isinstance(said, str) and said.lower() in _BROKEN
