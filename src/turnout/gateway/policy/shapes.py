"""Which shape a request is of, where nobody says."""

from collections.abc import Mapping

import orjson

from turnout.gateway.dialog.conversation import Shape

__all__ = ["shape_of"]


def shape_of(raw: bytes, headers: Mapping[str, str]) -> Shape:
    """Return the shape that a body most likely is of; what it is not, its parser will say."""
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return "chat"
    if not isinstance(body, dict):
        return "chat"
    if "input" in body:
        return "responses"
    tools = body.get("tools")
    listed = [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    # Chat completions have a tool's name one level deeper.
    named = any("input_schema" in tool or "name" in tool for tool in listed)
    anthropic = "anthropic-version" in headers or "system" in body or named
    return "messages" if anthropic else "chat"
