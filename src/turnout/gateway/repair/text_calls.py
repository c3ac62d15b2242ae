"""Tool calls that a server left in the text of a message."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from turnout.core.json import JsonObject, JsonValue, as_object, as_text

__all__ = ["FoundCalls", "TextCall", "find_calls", "holds_call_marks"]

_MARKED = (
    re.compile(r"<tool_call>(?P<body>.*?)(?:</tool_call>|\Z)", re.DOTALL),
    re.compile(r"(?P<body><function=.*?(?:</function>|\Z))", re.DOTALL),
    re.compile(r"\[TOOL_CALLS\](?P<body>.*)\Z", re.DOTALL),
)
_FENCED = re.compile(r"```(?:json|tool_call)?[ \t]*\n(?P<body>.*?)```", re.DOTALL)
_FUNCTION, _PARAMETER = "<function=", "<parameter="
_CALLS, _CALL_ID, _ARGUMENTS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
_QUOTES = "`\"'"
_LONGEST_PREFIX = 200
"""Characters of a line before a mark within which its start is looked for."""


@dataclass(frozen=True, slots=True)
class TextCall:
    """A call as it was written out."""

    name: str
    arguments: str
    """One JSON object."""


@dataclass(frozen=True, slots=True)
class FoundCalls:
    """What a text holds."""

    calls: tuple[TextCall, ...]
    """Calls of declared tools, in their order."""
    rest: str
    """The text without them."""


def holds_call_marks(text: str) -> bool:
    """Return whether the text holds a mark with which models open a call."""
    return any(mark.search(text) for mark in _MARKED)


def find_calls(text: str, declared: Mapping[str, JsonObject]) -> FoundCalls:
    """Return the calls in `text` of the declared tools, given with their parameters' schemas.

    For servers that are known to leave calls in the text: a model that calls natively may show
    one as an example. They may stand among prose, between marks, in a fenced block, or be the whole
    text as JSON; what is quoted is no call.
    """
    for pattern in (*_MARKED, _FENCED):
        found = _by_pattern(pattern, text, declared)
        if found.calls:
            return found
    if calls := _declared(_from_json(text), declared):
        return FoundCalls(calls, "")
    return FoundCalls((), text)


def _by_pattern(
    pattern: re.Pattern[str], text: str, declared: Mapping[str, JsonObject]
) -> FoundCalls:
    calls: list[TextCall] = []
    rest: list[str] = []
    end = 0
    for match in pattern.finditer(text):
        if _is_quoted(text, match):
            continue
        found = _declared(_from_body(match["body"], declared), declared)
        if found:
            calls += found
            rest.append(text[end : match.start()])
            end = match.end()
    return FoundCalls(tuple(calls), "".join((*rest, text[end:])).strip())


def _is_quoted(text: str, match: re.Match[str]) -> bool:
    """Return whether a mark stands between quotation marks, or in a quoted line."""
    start, end = match.span()
    before, after = text[max(0, start - 1) : start], text[end : end + 1]
    if before and before == after and before in _QUOTES:
        return True
    *_, line = text[max(0, start - _LONGEST_PREFIX) : start].rsplit("\n", 1)
    return line.lstrip().startswith(">") and len(line) < _LONGEST_PREFIX


def _declared(calls: Iterator[TextCall], declared: Collection[str]) -> tuple[TextCall, ...]:
    return tuple(call for call in calls if call.name in declared)


def _from_body(body: str, declared: Mapping[str, JsonObject]) -> Iterator[TextCall]:
    # As JSON first: a string within it may hold what looks like a mark.
    if calls := list(_from_json(body)):
        yield from calls
        return
    if calls := list(_from_names(body)):
        yield from calls
        return
    _, *functions = body.split(_FUNCTION)
    for function in functions:
        name, _, inside = function.partition(">")
        inside, closed, _ = inside.partition("</function>")
        inside = inside.strip()
        if inside and not inside.startswith(_PARAMETER):
            arguments = _arguments(inside)
        else:
            arguments = _parameters(inside, declared.get(name, {})) if closed else None
        if arguments is not None:
            yield TextCall(name, arguments)


def _from_names(body: str) -> Iterator[TextCall]:
    """Yield calls written as a name with an object behind it, each after a mark of its own."""
    for part in body.split(_CALLS):
        name, marked, arguments = part.partition(_ARGUMENTS)
        if not marked:
            name, brace, rest = part.partition("{")
            arguments = brace + rest
        name, _, _ = name.partition(_CALL_ID)
        if (found := _arguments(arguments)) is not None:
            yield TextCall(name.strip(), found)


def _parameters(inside: str, schema: JsonObject) -> str | None:
    """Return the arguments between parameter tags, strings as written; None where one is cut."""
    properties = as_object(schema.get("properties"))
    values: dict[str, JsonValue] = {}
    for part in inside.split(_PARAMETER)[1:]:
        name, _, rest = part.partition(">")
        text, closed, _ = rest.partition("</parameter>")
        if not closed:
            return None
        text = text.removeprefix("\n").removesuffix("\n")
        parsed = None if _is_string(as_object(properties.get(name))) else _parse(text)
        values[name] = text if parsed is None else parsed
    return _dump(values)


def _is_string(schema: JsonObject) -> bool:
    return schema.get("type") in (None, "string")


def _from_json(text: str) -> Iterator[TextCall]:
    parsed = _parse(text.strip())
    for item in parsed if isinstance(parsed, list) else [parsed]:
        call = as_object(item)
        call = as_object(call.get("function")) or call
        arguments = _arguments(call.get("arguments", call.get("parameters")))
        if arguments is not None:
            yield TextCall(as_text(call.get("name")), arguments)


def _arguments(value: JsonValue) -> str | None:
    parsed = _parse(value) if isinstance(value, str) else value
    return _dump(parsed) if isinstance(parsed, dict) else None


def _parse(text: str) -> JsonValue:
    try:
        # Not strict: models write line ends into strings as they are.
        parsed: JsonValue = json.loads(text, strict=False, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return parsed


def _refuse(constant: str) -> JsonValue:
    raise ValueError(constant)


def _dump(value: JsonValue) -> str:
    text = json.dumps(value, ensure_ascii=False)
    # Half a surrogate pair cannot be sent as it is.
    return json.dumps(value) if any("\ud800" <= c <= "\udfff" for c in text) else text
