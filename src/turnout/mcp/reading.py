"""What a server says, made fit for a model: bounded, printable, without our credentials."""

import json
import re
from base64 import b64encode
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from mcp import types

from turnout.core.govern.connections import Connection, ConnectionTool, ToolOutcome
from turnout.core.json import JsonObject, JsonValue
from turnout.core.text import seen_only

__all__ = ["Scrubber", "read_result", "read_tool", "usable_tools"]

_LONGEST_DESCRIPTION: Final = 4_000
_LARGEST_SCHEMA: Final = 32_000
_DEEPEST_SCHEMA: Final = 64
_SHORTEST_SECRET: Final = 6
"""Characters below which a secret would be found in ordinary text."""

_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")


class Scrubber:
    """Replaces the secrets of a connection wherever its server repeats them."""

    def __init__(self, secrets: Sequence[str]) -> None:
        forms: set[str] = set()
        for secret in secrets:
            if len(secret) >= _SHORTEST_SECRET:
                forms |= {secret, quote(secret, safe=""), b64encode(secret.encode()).decode()}
        longest_first = sorted(forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    def __call__(self, text: str) -> str:
        """Return `text` without secrets and without characters that nobody sees."""
        # Characters first: one of them inside a secret would hide it from the search.
        seen = seen_only(text.replace("\r\n", "\n"))
        return seen if self._pattern is None else self._pattern.sub("[credential]", seen)


def read_tool(tool: types.Tool, scrub: Scrubber) -> ConnectionTool | None:
    """Return a listed tool; None where no model could be shown it: its name or schema is unfit."""
    if _NAME.fullmatch(tool.name) is None:
        return None
    schema = _schema(tool.input_schema, scrub)
    if schema is None:
        return None
    hints = tool.annotations
    return ConnectionTool(
        name=tool.name,
        description=scrub(tool.description or tool.title or "")[:_LONGEST_DESCRIPTION],
        parameters=schema,
        read_only=hints is not None and hints.read_only_hint is True,
    )


def usable_tools(
    tools: Sequence[types.Tool], connection: Connection, scrub: Scrubber
) -> tuple[ConnectionTool, ...]:
    """Return those of the listed tools that a connection lets models use, by name."""
    read = {found.name: found for tool in tools if (found := read_tool(tool, scrub))}
    return tuple(
        read[name] for name in sorted(read) if read[name].read_only or not connection.read_only
    )


def read_result(
    result: types.CallToolResult, connection: Connection, scrub: Scrubber
) -> ToolOutcome:
    """Return what a model reads of a result, cut in the middle where it is too long."""
    said = "\n".join(filter(None, (_block(block) for block in result.content)))
    if not said and result.structured_content is not None:
        said = json.dumps(result.structured_content, ensure_ascii=False)
    return ToolOutcome(_cut(scrub(said), connection.longest_result), is_error=result.is_error)


def _schema(schema: JsonObject, scrub: Scrubber) -> JsonObject | None:
    if schema.get("type") != "object" or _depth(schema) > _DEEPEST_SCHEMA:
        return None
    if len(json.dumps(schema)) > _LARGEST_SCHEMA:
        return None
    return {scrub(name): _scrubbed(value, scrub) for name, value in schema.items()}


def _scrubbed(value: JsonValue, scrub: Scrubber) -> JsonValue:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, dict):
        return {scrub(name): _scrubbed(inside, scrub) for name, inside in value.items()}
    if isinstance(value, list):
        return [_scrubbed(inside, scrub) for inside in value]
    return value


def _depth(value: object) -> int:
    deepest, level = 0, [value]
    while level and deepest <= _DEEPEST_SCHEMA:
        deepest += 1
        inside: list[object] = []
        for item in level:
            if isinstance(item, dict):
                inside += item.values()
            elif isinstance(item, list):
                inside += item
        level = inside
    return deepest


def _block(block: types.ContentBlock) -> str:
    match block:
        case types.TextContent():
            return block.text
        case types.EmbeddedResource(resource=types.TextResourceContents() as inside):
            return f"{inside.uri}:\n{inside.text}"
        case types.ResourceLink():
            return f"{block.name}: {block.uri}"
        case types.ImageContent() | types.AudioContent():
            return f"[{block.type} of type {block.mime_type}, not shown]"
        case _:
            return f"[{block.type}, not shown]"


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    head, tail = most - most // 4, most // 4
    left_out = len(text) - most
    return f"{text[:head]}\n[{left_out} characters left out]\n{text[len(text) - tail :]}"
