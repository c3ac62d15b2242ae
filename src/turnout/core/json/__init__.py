"""JSON as a type, and as text that any database keeps."""

from turnout.core.json.text import (
    DEEPEST,
    TooDeepError,
    ascii_json,
    doubled_name,
    encode_values,
    read_json,
)
from turnout.core.json.values import JsonObject, JsonValue, as_object, as_objects, as_text

__all__ = [
    "DEEPEST",
    "JsonObject",
    "JsonValue",
    "TooDeepError",
    "as_object",
    "as_objects",
    "as_text",
    "ascii_json",
    "doubled_name",
    "encode_values",
    "read_json",
]
