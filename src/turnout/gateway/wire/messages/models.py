"""`GET /models` in the form that Anthropic's clients read."""

from collections.abc import Mapping, Sequence

import orjson

from turnout.core.json import JsonValue
from turnout.gateway.wire.fields import invalid

__all__ = ["write_model", "write_models"]

_PAGE = 20
_LONGEST_PAGE = 1_000
_LONGEST_NUMBER = 4
_UNKNOWN_DAY = "1970-01-01T00:00:00Z"


def write_models(names: Sequence[str], query: Mapping[str, str]) -> bytes:
    """Return one page of models: `limit` of them, behind `after_id` or before `before_id`.

    `GatewayError` (400) where the query asks for what is not there.
    """
    limit = _limit(query.get("limit"))
    first, last = 0, len(names)
    if (after := query.get("after_id")) is not None:
        first = _place(names, after, "after_id") + 1
    if (before := query.get("before_id")) is not None:
        last = _place(names, before, "before_id")
        first = max(first, last - limit)
    page = names[first:last][:limit]
    more = first > 0 if before is not None and after is None else first + len(page) < last
    return orjson.dumps(
        {
            "data": [_entry(name) for name in page],
            "has_more": more,
            "first_id": page[0] if page else None,
            "last_id": page[-1] if page else None,
        }
    )


def write_model(name: str) -> bytes:
    """Return one model."""
    return orjson.dumps(_entry(name))


def _entry(name: str) -> dict[str, JsonValue]:
    return {
        "type": "model",
        "id": name,
        "display_name": name,
        "created_at": _UNKNOWN_DAY,
        "lifecycle": "active",
    }


def _limit(asked: str | None) -> int:
    if asked is None:
        return _PAGE
    number = asked.isascii() and asked.isdecimal() and len(asked) <= _LONGEST_NUMBER
    if not number or not 1 <= int(asked) <= _LONGEST_PAGE:
        raise invalid(f"`limit` must be a whole number from 1 to {_LONGEST_PAGE}.", "limit")
    return int(asked)


def _place(names: Sequence[str], name: str, param: str) -> int:
    if name not in names:
        raise invalid(f"`{param}` names no model of the list.", param)
    return names.index(name)
