"""Fields of a request body, read with the field's name in every refusal."""

from collections.abc import Sequence
from difflib import get_close_matches

from turnout.core.json import JsonObject, JsonValue
from turnout.errors import GatewayError

__all__ = [
    "LONGEST_NAME",
    "flag",
    "invalid",
    "items",
    "near",
    "objects",
    "one_of",
    "positive",
    "text",
]

LONGEST_NAME = 256
"""Characters of the name of a model, a tool or a policy."""


def invalid(message: str, param: str | None, *, mend: str = "") -> GatewayError:
    """Return the refusal (400) of a request whose field `param` is wrong."""
    return GatewayError(message, status=400, code="invalid_request", mend=mend, param=param)


def text(owner: JsonObject, name: str, path: str, *, longest: int = LONGEST_NAME) -> str | None:
    """Return a string that is not empty; None where the field is absent or null."""
    value = owner.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= longest:
        raise invalid(f"`{path}` must be a string of 1 to {longest} characters.", path)
    return value


def near(name: str, allowed: Sequence[str]) -> str:
    """Return a sentence that offers the allowed name closest to a wrong one; empty: none is."""
    found = get_close_matches(name, allowed, n=1) if len(name) <= LONGEST_NAME else []
    return f"Did you mean `{found[0]}`?" if found else ""


def flag(owner: JsonObject, name: str, path: str) -> bool | None:
    """Return a boolean; None where the field is absent or null."""
    value = owner.get(name)
    if value is None or isinstance(value, bool):
        return value
    raise invalid(f"`{path}` must be true or false.", path)


def positive(owner: JsonObject, name: str, path: str) -> int | None:
    """Return an integer above zero; None where the field is absent or null."""
    value = owner.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise invalid(f"`{path}` must be an integer above 0.", path)
    return value


def objects(owner: JsonObject, name: str, path: str) -> JsonObject | None:
    """Return an object; None where the field is absent or null."""
    value = owner.get(name)
    if value is None or isinstance(value, dict):
        return value
    raise invalid(f"`{path}` must be an object.", path)


def items(owner: JsonObject, name: str, path: str) -> Sequence[JsonObject]:
    """Return a list of objects; empty where the field is absent or null."""
    value = owner.get(name)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise invalid(f"`{path}` must be a list.", path)
    for position, item in enumerate(value):
        if not isinstance(item, dict):
            raise invalid(f"`{path}[{position}]` must be an object.", f"{path}[{position}]")
    return value


def one_of(value: JsonValue, allowed: Sequence[str], path: str) -> str:
    """Return the one of `allowed` that `value` is."""
    if isinstance(value, str) and value in allowed:
        return value
    raise invalid(
        f"`{path}` must be one of {', '.join(allowed)}.",
        path,
        mend=near(value, allowed) if isinstance(value, str) else "",
    )
