"""JSON as a type, and as text that any database keeps."""

from turnout.core.json.text import ascii_json
from turnout.core.json.values import JsonObject, JsonValue, as_object, as_objects, as_text

__all__ = ["JsonObject", "JsonValue", "as_object", "as_objects", "as_text", "ascii_json"]
