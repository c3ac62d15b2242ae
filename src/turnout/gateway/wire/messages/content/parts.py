"""Content blocks of the messages shape, read as parts."""

from collections.abc import Iterator

import orjson

from turnout.core.ids import ToolCallId
from turnout.core.json import JsonObject, JsonValue, as_object, as_objects, as_text
from turnout.gateway.dialog.conversation import (
    Call,
    Foreign,
    Media,
    Part,
    Reasoning,
    Result,
    Text,
)

__all__ = ["FOREIGN_SIGNATURE", "ROLES", "has_own_signature", "read_parts", "read_thought"]

ROLES = ("assistant", "system", "user")

FOREIGN_SIGNATURE = "turnout."
"""Begins the signature of a thinking block whose thoughts are not of a maker of this shape."""


def read_parts(content: JsonValue) -> Iterator[Part]:
    """Yield the parts of a message's content, empty texts left out."""
    if isinstance(content, str):
        if content:
            yield Text(content)
        return
    for block in as_objects(content):
        yield from _parts(block)


def has_own_signature(block: JsonObject) -> bool:
    """Return whether a thinking block was signed by a maker of this shape."""
    signature = as_text(block.get("signature"))
    return bool(signature) and not signature.startswith(FOREIGN_SIGNATURE)


def read_thought(block: JsonObject) -> Reasoning:
    """Return a `thinking` or `redacted_thinking` block."""
    if block.get("type") == "redacted_thinking":
        return Reasoning("", encrypted=as_text(block.get("data")))
    thought, signature = as_text(block.get("thinking")), as_text(block.get("signature"))
    if signature.startswith(FOREIGN_SIGNATURE):
        return Reasoning(thought, encrypted=signature.removeprefix(FOREIGN_SIGNATURE))
    return Reasoning(thought, signature)


def _parts(block: JsonObject) -> Iterator[Part]:
    cached = block.get("cache_control") is not None
    match block.get("type"):
        case "text":
            if said := as_text(block.get("text")):
                yield Text(said, cached)
        case "image" | "document" | "search_result":
            yield _medium(block, cached)
        case "thinking" | "redacted_thinking":
            yield read_thought(block)
        case "tool_use":
            call_id = ToolCallId(as_text(block.get("id")))
            arguments = orjson.dumps(as_object(block.get("input"))).decode()
            yield Call(call_id, as_text(block.get("name")), arguments, cached=cached)
        case "tool_result":
            yield _result(block, cached)
        case _:
            yield Foreign("messages", block)


def _result(block: JsonObject, cached: bool) -> Result:
    parts = tuple(p for p in read_parts(block.get("content")) if isinstance(p, Text | Media))
    return Result(
        ToolCallId(as_text(block.get("tool_use_id"))),
        parts,
        is_error=block.get("is_error") is True,
        cached=cached,
    )


def _medium(block: JsonObject, cached: bool) -> Text | Media | Foreign:
    source = as_object(block.get("source"))
    name = as_text(block.get("title"))
    if block.get("type") == "search_result":
        found = "\n".join(as_text(b.get("text")) for b in as_objects(block.get("content")))
        return Text("\n".join([name, as_text(block.get("source")), found]).strip("\n"), cached)
    kind: str = "image" if block.get("type") == "image" else "file"
    match source.get("type"):
        case "base64":
            form, data = as_text(source.get("media_type")), as_text(source.get("data"))
            url = f"data:{form};base64,{data}"
        case "url":
            url = as_text(source.get("url"))
        case "text":
            return Text(_titled(name, as_text(source.get("data"))), cached)
        case "content":
            inner = source.get("content")
            texts = [as_text(inner), *(as_text(b.get("text")) for b in as_objects(inner))]
            return Text(_titled(name, "\n".join(t for t in texts if t)), cached)
        case _:
            return Foreign("messages", block)
    return Media("image" if kind == "image" else "file", url, name, cached=cached)


def _titled(name: str, said: str) -> str:
    return f"{name}\n{said}" if name else said
