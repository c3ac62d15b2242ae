"""A messages body as a conversation that every shape can say."""

from collections.abc import Iterator

from turnout.core.json import JsonObject, as_object, as_objects, as_text
from turnout.gateway.dialog.conversation import (
    Conversation,
    Foreign,
    Part,
    Sampling,
    Schema,
    Text,
    ToolSpec,
    Turn,
)
from turnout.gateway.exchange import InferenceRequest
from turnout.gateway.wire.messages.content.parts import read_parts

__all__ = ["read_conversation"]

_BILLING_MARK = "x-anthropic-billing-header"
_LONGEST_USER = 64
"""Characters: other APIs refuse longer ones, and nothing depends on it."""
_SCHEMA_NAME = "answer"
"""The shape has no name for a schema, others want one."""


def read_conversation(request: InferenceRequest) -> Conversation:
    """Return all that a messages request says."""
    body = request.body
    config = as_object(body.get("output_config"))
    choice = as_object(body.get("tool_choice"))
    alone = choice.get("disable_parallel_tool_use")
    effort = as_text(config.get("effort"))
    budget = as_object(body.get("thinking")).get("budget_tokens")
    user = as_object(body.get("metadata")).get("user_id")
    return Conversation(
        turns=tuple(_turns(body)),
        tools=tuple(_tool(tool) for tool in as_objects(body.get("tools"))),
        tool_choice=request.tool_choice,
        parallel_calls=not alone if isinstance(alone, bool) else None,
        sampling=_sampling(body),
        schema=_schema(body),
        effort="xhigh" if effort == "max" else effort or None,
        thinking_budget=budget if isinstance(budget, int) else None,
        end_user=user if isinstance(user, str) and 0 < len(user) <= _LONGEST_USER else None,
    )


def _turns(body: JsonObject) -> Iterator[Turn]:
    standing = tuple(_standing(body))
    if standing:
        yield Turn("system", standing)
    for message in as_objects(body.get("messages")):
        parts = tuple(read_parts(message.get("content")))
        role = message.get("role")
        if parts:
            yield Turn(role if role in ("system", "assistant") else "user", parts)


def _standing(body: JsonObject) -> Iterator[Part]:
    """Yield the instructions without what Claude Code notes for its maker.

    That line changes with every request: before a prompt it would spoil any cache.
    """
    for part in read_parts(body.get("system")):
        if not (isinstance(part, Text) and part.text.startswith(_BILLING_MARK)):
            yield part


def _tool(tool: JsonObject) -> ToolSpec:
    name, cached = as_text(tool.get("name")), tool.get("cache_control") is not None
    if tool.get("type") not in (None, "custom"):
        kind = as_text(tool.get("type"))
        return ToolSpec(name or kind, cached=cached, foreign=Foreign("messages", tool))
    parameters, strict = tool.get("input_schema"), tool.get("strict")
    return ToolSpec(
        name,
        as_text(tool.get("description")),
        as_object(parameters) if parameters is not None else None,
        strict if isinstance(strict, bool) else None,
        cached=cached,
    )


def _sampling(body: JsonObject) -> Sampling:
    top_k = body.get("top_k")
    limit = body.get("max_tokens")
    stops = body.get("stop_sequences")
    return Sampling(
        # No other shape can ask for nothing at all.
        max_tokens=max(1, limit) if isinstance(limit, int) else None,
        temperature=_number(body, "temperature"),
        top_p=_number(body, "top_p"),
        top_k=top_k if isinstance(top_k, int) else None,
        stop=tuple(s for s in stops if isinstance(s, str)) if isinstance(stops, list) else (),
    )


def _number(body: JsonObject, name: str) -> float | None:
    value = body.get(name)
    return None if isinstance(value, bool) or not isinstance(value, int | float) else value


def _schema(body: JsonObject) -> Schema | None:
    wanted = as_object(as_object(body.get("output_config")).get("format")) or as_object(
        body.get("output_format")
    )
    if wanted.get("type") != "json_schema":
        return None
    return Schema(_SCHEMA_NAME, as_object(wanted.get("schema")), strict=True)
