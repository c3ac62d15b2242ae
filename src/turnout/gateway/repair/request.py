"""A request's body as one deployment needs it."""

from collections.abc import Iterator, Mapping, Sequence

from turnout.core.json import JsonObject, JsonValue, as_object, as_objects, as_text
from turnout.gateway.catalog import Deployment
from turnout.gateway.exchange import InferenceRequest

__all__ = ["emulates_tool_choice", "prepare_body"]


def prepare_body(request: InferenceRequest, deployment: Deployment) -> JsonObject:
    """Return the client's body under the upstream's model name; the order of fields is kept.

    A stream is asked for its usage. Where the server does not enforce a tool choice, the choice
    becomes a JSON schema with one alternative for each tool that may be called.
    """
    body: dict[str, JsonValue] = {**request.body, "model": deployment.upstream_name}
    if request.stream:
        options = as_object(body.get("stream_options"))
        body["stream_options"] = {**options, "include_usage": True}
    if request.thinking is not None:
        body |= deployment.thinking_on if request.thinking else deployment.thinking_off
    if emulates_tool_choice(request, deployment):
        del body["tool_choice"]
        body["response_format"] = _call_format(list(_callable(request)))
    return body


def emulates_tool_choice(request: InferenceRequest, deployment: Deployment) -> bool:
    """Return whether the request's tool choice is sent as a JSON schema in its place."""
    return (
        not deployment.enforces_tool_choice
        and deployment.json_schema
        and request.tool_choice not in {"auto", "none"}
        and not request.wants_json_schema
        and any(True for _ in _callable(request))
    )


def _callable(request: InferenceRequest) -> Iterator[JsonObject]:
    for tool in as_objects(request.body.get("tools")):
        function = as_object(tool.get("function"))
        name = as_text(function.get("name"))
        if name and request.tool_choice in {"required", name}:
            yield function


def _call_format(functions: Sequence[JsonObject]) -> JsonObject:
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
