"""What the messages API refuses in a request, as far as a translation may get it wrong."""

import re
from collections.abc import Collection, Iterator

from turnout.core.json import JsonObject, as_object, as_objects, as_text

__all__ = ["request_faults"]

_ID = re.compile(r"[a-zA-Z0-9_-]+\Z")
_FIELDS = frozenset(
    {
        "cache_control",
        "container",
        "context_management",
        "max_tokens",
        "mcp_servers",
        "messages",
        "metadata",
        "model",
        "output_config",
        "service_tier",
        "stop_sequences",
        "stream",
        "system",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_k",
        "top_p",
    }
)
_MOST_MARKS = 4


def request_faults(body: JsonObject, signatures: Collection[str]) -> list[str]:
    """Return what is wrong; empty: nothing.

    `signatures`: those of the thoughts that this server has had.
    """
    return [
        *_of_fields(body),
        *_of_messages(as_objects(body.get("messages"))),
        *_of_blocks(as_objects(body.get("messages")), signatures),
        *_of_marks(body),
    ]


def _of_fields(body: JsonObject) -> Iterator[str]:
    for name in body:
        if name not in _FIELDS:
            yield f"{name}: Extra inputs are not permitted"
    if not isinstance(body.get("max_tokens"), int):
        yield "max_tokens: Field required"
    temperature = body.get("temperature")
    if isinstance(temperature, int | float) and not 0 <= temperature <= 1:
        yield "temperature: range: 0..1"
    for tool in as_objects(body.get("tools")):
        schema = as_object(tool.get("input_schema"))
        if tool.get("type") in (None, "custom") and schema.get("type") != "object":
            yield "tools.0.input_schema.type: Field required"
    if body.get("tool_choice") is not None and not body.get("tools"):
        yield "tool_choice may only be specified while providing tools"


def _of_messages(messages: list[JsonObject]) -> Iterator[str]:
    if not messages:
        yield "messages: at least one message is required"
    used: set[str] = set()
    asked: set[str] = set()
    for at, message in enumerate(messages):
        blocks = as_objects(message.get("content"))
        if not message.get("content"):
            yield f"messages.{at}: all messages must have non-empty content"
        answered = {as_text(b.get("tool_use_id")) for b in _of_type(blocks, "tool_result")}
        if asked - answered:
            yield f"messages.{at}: `tool_use` ids were found without `tool_result` blocks"
        if answered - asked:
            yield f"messages.{at}: unexpected `tool_use_id` found in `tool_result` blocks"
        results = [b.get("type") == "tool_result" for b in blocks]
        if results != sorted(results, reverse=True):
            yield f"messages.{at}: `tool_result` blocks must come first"
        asked = {as_text(b.get("id")) for b in _of_type(blocks, "tool_use")}
        if asked & used or len(asked) != len(_of_type(blocks, "tool_use")):
            yield f"messages.{at}: `tool_use` ids must be unique"
        used |= asked
    if asked:
        yield "messages: `tool_use` ids were found without `tool_result` blocks"


def _of_blocks(messages: list[JsonObject], signatures: Collection[str]) -> Iterator[str]:
    for at, message in enumerate(messages):
        for block in as_objects(message.get("content")):
            match block.get("type"):
                case "text" if not as_text(block.get("text")).strip():
                    yield f"messages.{at}: text content blocks must contain non-whitespace text"
                case "thinking" if block.get("signature") not in signatures:
                    yield f"messages.{at}: Invalid `signature` in `thinking` block"
                case "tool_use":
                    if not _ID.match(as_text(block.get("id"))):
                        yield f"messages.{at}: String should match pattern '^[a-zA-Z0-9_-]+$'"
                    if not isinstance(block.get("input"), dict):
                        yield f"messages.{at}: Input should be a valid dictionary"
                case _:
                    pass


def _of_marks(body: JsonObject) -> Iterator[str]:
    marked = [*as_objects(body.get("system")), *as_objects(body.get("tools"))]
    for message in as_objects(body.get("messages")):
        marked += as_objects(message.get("content"))
    if sum("cache_control" in block for block in marked) > _MOST_MARKS:
        yield f"A maximum of {_MOST_MARKS} blocks with cache_control may be provided"


def _of_type(blocks: list[JsonObject], kind: str) -> list[JsonObject]:
    return [block for block in blocks if block.get("type") == kind]
