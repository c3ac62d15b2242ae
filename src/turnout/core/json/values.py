"""The type of parsed JSON, and how to look into JSON that strangers wrote."""

from collections.abc import Mapping, Sequence

__all__ = ["JsonObject", "JsonValue", "as_object", "as_objects", "as_text"]

JsonValue = None | bool | int | float | str | Sequence["JsonValue"] | Mapping[str, "JsonValue"]
"""Any parsed JSON value."""

JsonObject = Mapping[str, JsonValue]
"""A parsed JSON object."""


def as_object(value: JsonValue) -> JsonObject:
    """Return `value` where it is an object, else an empty one."""
    # What a parser returns is told at once; asking an abstract class takes ten times as long.
    if type(value) is dict:
        return value
    return value if isinstance(value, Mapping) else {}


def as_objects(value: JsonValue) -> list[JsonObject]:
    """Return the objects in `value` where it is an array, else none."""
    if type(value) is list:
        return [item for item in value if type(item) is dict or isinstance(item, Mapping)]
    if isinstance(value, str) or not isinstance(value, Sequence):
        return []
    return [item for item in value if isinstance(item, Mapping)]


def as_text(value: JsonValue) -> str:
    """Return `value` where it is a string, else an empty one."""
    return value if isinstance(value, str) else ""
