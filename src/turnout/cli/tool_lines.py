"""A tool call and what came of it, in a few words or with all its arguments."""

import json
import re
from collections.abc import Mapping
from textwrap import indent
from typing import Final

from turnout.agent.tools.patch_text import parse_patch
from turnout.core.runs import Connection
from turnout.core.tools import ToolCall, ToolResult
from turnout.errors import ToolError

__all__ = [
    "Part",
    "call_block",
    "call_part",
    "call_text",
    "connection_text",
    "outcome_text",
    "part_text",
]

_SHOWN_ARGUMENT: Final = 60
_SHOWN_OUTCOME: Final = 100
_PASSED: Final = re.compile(r"(\d+) passed")
_FAILED: Final = re.compile(r"(\d+) failed")


def call_text(call: ToolCall) -> str:
    """Return a call's name and what it is about: a path, a command, the files of a patch."""
    try:
        arguments = json.loads(call.arguments or "{}", strict=False)
    except (ValueError, RecursionError):
        subject = "(arguments that are no JSON)"
    else:
        subject = _subject(call.name, arguments) if isinstance(arguments, dict) else ""
    return f"{_cut(call.name, _SHOWN_ARGUMENT)} {_cut(subject, _SHOWN_ARGUMENT)}".rstrip()


def outcome_text(call: ToolCall, result: ToolResult) -> str:
    """Return a tick where all went well, else how a command, the tests or the call ended."""
    first = result.content.strip().partition("\n")[0]
    if result.is_error:
        return f"✗ {_cut(first, _SHOWN_OUTCOME)}".rstrip()
    match call.name:
        case "run":
            ended = first.partition(";")[0]
            return "✓" if ended == "exit 0" else f"→ {_cut(ended, _SHOWN_OUTCOME)}"
        case "run_tests":
            return _tests(first)
        case _:
            return "✓"


def connection_text(asked: Connection) -> str:
    """Return a connection's goal and what became of it."""
    goal = f"{_cut(asked.host, _SHOWN_ARGUMENT)}:{asked.port}"
    if not asked.allowed:
        return f"connection to {goal} refused: {_cut(asked.reason, _SHOWN_OUTCOME)}"
    failed = f", {_cut(asked.reason, _SHOWN_OUTCOME)}" if asked.reason else ""
    secrets = f", with {', '.join(asked.secrets)}" if asked.secrets else ""
    return (
        f"connection to {goal}{secrets}: {asked.sent_bytes:,} bytes out, "
        f"{asked.received_bytes:,} in{failed}"
    )


def _subject(name: str, arguments: Mapping[str, object]) -> str:
    """Return the first argument, which tells the most; of a patch, its files."""
    first = str(next(iter(arguments.values()), ""))
    if name != "apply_patch":
        return first
    try:
        return " ".join(patch.new or patch.old or "" for patch in parse_patch(first))
    except ToolError:
        return "(a patch that cannot be read)"


def _tests(first: str) -> str:
    passed, failed = _PASSED.search(first), _FAILED.search(first)
    if passed is None or failed is None:
        return f"→ {_cut(first, _SHOWN_OUTCOME)}"
    if failed[1] != "0":
        return f"→ {failed[0]}, {passed[0]}"
    passing = "(exit 0)" in first or first.startswith("All tests pass")
    return f"✓ {passed[0]}" if passing else f"→ {_cut(first, _SHOWN_OUTCOME)}"


def _cut(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most]}…"


Part = tuple[str, object]
"""A heading and what stands under it; a text of several lines is set off as a block."""


def call_block(call: ToolCall) -> str:
    """Return a call with all its arguments; it may hold what steers a terminal."""
    return part_text(call_part(call))


def part_text(part: Part) -> str:
    """Return a heading with what stands under it, indented."""
    heading, value = part
    text = str(value).rstrip("\n")
    if "\n" not in text:
        return f"    {heading}: {text}"
    return f"    {heading}:\n{indent(text, ' ' * 8)}"


def call_part(call: ToolCall) -> Part:
    """Return a call with its arguments one after the other, texts with their line breaks."""
    try:
        arguments = json.loads(call.arguments or "{}", strict=False)
    except (ValueError, RecursionError):
        return call.name, call.arguments
    if not isinstance(arguments, dict):
        return call.name, call.arguments
    lines = [part_text(part).removeprefix("    ") for part in arguments.items()]
    return call.name, "\n".join(lines) or "no arguments"
