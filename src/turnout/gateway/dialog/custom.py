"""Custom tools for those who know none: a function that takes one text."""

from dataclasses import replace

import orjson

from turnout.core.json import JsonObject
from turnout.gateway.dialog.conversation import ToolSpec

__all__ = ["INPUT", "as_function", "unwrap", "wrap"]

INPUT = "input"
"""Name of the one argument."""

_PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {INPUT: {"type": "string", "description": "The whole input, as it is."}},
    "required": [INPUT],
    "additionalProperties": False,
}


def as_function(tool: ToolSpec) -> ToolSpec:
    """Return a custom tool as the function that stands in for it; any other as it is."""
    if tool.type != "custom":
        return tool
    return replace(tool, type="function", parameters=_PARAMETERS, foreign=None)


def wrap(text: str) -> str:
    """Return a custom call's text as the arguments of that function."""
    return orjson.dumps({INPUT: text}).decode()


def unwrap(arguments: str) -> str:
    """Return the text that such arguments hold; arguments that hold none, as they are."""
    try:
        parsed = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return arguments
    text = parsed.get(INPUT) if isinstance(parsed, dict) else None
    return text if isinstance(text, str) else arguments
