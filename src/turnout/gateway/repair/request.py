"""A chat request's body as one deployment needs it."""

from collections.abc import Iterator, Mapping, Sequence

from turnout.core.json import JsonObject, JsonValue, as_object, as_objects, as_text
from turnout.gateway.catalog import Deployment
from turnout.gateway.exchange import InferenceRequest
from turnout.gateway.repair.marks import with_marks
from turnout.gateway.repair.reasoning import with_reasoning

__all__ = ["call_format", "emulates_tool_choice", "prepare_body"]

_LIMITS = ("max_tokens", "max_completion_tokens")


def prepare_body(base: JsonObject, request: InferenceRequest, deployment: Deployment) -> JsonObject:
    """Return a body of the chat shape under the upstream's model name; field order is kept.

    A stream is asked for its usage. Where the server does not enforce a tool choice, the choice
    becomes a JSON schema with one alternative for each tool that may be called.
    """
    body: dict[str, JsonValue] = {**base, "model": deployment.upstream_name}
    if request.stream:
        options = as_object(body.get("stream_options"))
        body["stream_options"] = {**options, "include_usage": True}
    if request.thinking is not None:
        body |= deployment.thinking_on if request.thinking else deployment.thinking_off
    body["messages"] = with_reasoning(body.get("messages"), request.thoughts, deployment)
    if request.caching and deployment.caching == "marks":
        body["messages"] = with_marks(body.get("messages"))
    if emulates_tool_choice(request, deployment) and (tools := list(_callable(body, request))):
        body.pop("tool_choice", None)
        body["response_format"] = call_format(tools)
    if deployment.max_tokens_field != "as_sent":
        body = _with_limit(body, deployment.max_tokens_field)
    if deployment.leaves_out:
        body = {name: value for name, value in body.items() if name not in deployment.leaves_out}
    return body


def emulates_tool_choice(request: InferenceRequest, deployment: Deployment) -> bool:
    """Return whether the request's tool choice is sent as a JSON schema in its place."""
    return (
        not deployment.enforces_tool_choice
        and deployment.json_schema
        and request.tool_choice not in {"auto", "none"}
        and not request.wants_json_schema
        and bool(request.tools)
    )


def _with_limit(body: JsonObject, field: str) -> dict[str, JsonValue]:
    """Return the body with its limit on output under the one name that the server knows."""
    return {
        field if name in _LIMITS else name: value
        for name, value in body.items()
        if not (name in _LIMITS and name != _LIMITS[1] and body.get(_LIMITS[1]) is not None)
    }


def _callable(body: JsonObject, request: InferenceRequest) -> Iterator[JsonObject]:
    for tool in as_objects(body.get("tools")):
        function = as_object(tool.get("function"))
        name = as_text(function.get("name"))
        if name and request.tool_choice in {"required", name}:
            yield function


def call_format(functions: Sequence[JsonObject]) -> JsonObject:
    """Return the `response_format` of chat that makes an answer one call of these functions."""
    definitions: dict[str, JsonValue] = {}
    alternatives: list[JsonValue] = []
    for at, function in enumerate(functions):
        arguments: JsonValue = as_object(function.get("parameters")) or {"type": "object"}
        if _refers(arguments):
            definitions[f"arguments_{at}"] = _moved(arguments, f"#/$defs/arguments_{at}")
            arguments = {"$ref": f"#/$defs/arguments_{at}"}
        alternatives.append(
            {
                "type": "object",
                "properties": {"name": {"const": function["name"]}, "arguments": arguments},
                "required": ["name", "arguments"],
                "additionalProperties": False,
            }
        )
    schema = as_object(alternatives[0]) if len(alternatives) == 1 else {"anyOf": alternatives}
    if definitions:
        schema = {"$defs": definitions, **schema}
    return {
        "type": "json_schema",
        "json_schema": {"name": "tool_call", "strict": True, "schema": schema},
    }


def _refers(schema: JsonValue) -> bool:
    if isinstance(schema, Mapping):
        return "$ref" in schema or any(_refers(part) for part in schema.values())
    return isinstance(schema, list) and any(_refers(part) for part in schema)


def _moved(schema: JsonValue, to: str) -> JsonValue:
    """Return a schema whose references to its own root point to its new place."""
    if isinstance(schema, Mapping):
        return {
            name: f"{to}{part[1:]}"
            if name == "$ref" and isinstance(part, str) and part.startswith("#")
            else _moved(part, to)
            for name, part in schema.items()
        }
    return [_moved(part, to) for part in schema] if isinstance(schema, list) else schema
