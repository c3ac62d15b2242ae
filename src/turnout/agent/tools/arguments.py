"""A model's arguments, read as it meant them where that is certain and refused where it is not."""

import json
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from turnout.agent.tools.base import Arguments
from turnout.agent.tools.marks import whole
from turnout.core.json import JsonObject, JsonValue, as_object, as_text
from turnout.core.tools import Tool
from turnout.errors import ToolError

__all__ = ["did_you_mean", "quoted", "read_arguments", "unfenced"]

_QUOTED = 200
_TRAILING_COMMA = re.compile(r'("(?:[^"\\]|\\.)*(?:"|\Z))|,(?=\s*[}\]])', re.DOTALL)
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_OTHER_NAMES: Mapping[str, Sequence[str]] = {
    "path": ("file_path", "filepath", "filename", "file"),
    "command": ("cmd",),
    "old": ("old_str", "old_string", "old_text"),
    "new": ("new_str", "new_string", "new_text", "content"),
    "diff": ("patch",),
}


def read_arguments(tool: Tool, raw: str) -> Arguments:
    """Return the arguments of a call; `ToolError` quoting what was sent where they do not fit.

    Mended are: a code fence around the JSON, JSON within a JSON string, raw line breaks in
    strings, trailing commas, surplus closing brackets, numbers written as strings, and the usual
    other names of an argument. JSON that ends too early is never completed.
    """
    properties = as_object(tool.parameters.get("properties"))
    given = _by_declared_name(properties, _parse(tool, raw))
    values: dict[str, str | int] = {}
    for name, declared in properties.items():
        value = given.get(name)
        if value is not None:
            values[name] = _value(tool, name, as_text(as_object(declared).get("type")), value)
    for name in _required(tool):
        if name not in values:
            raise _refusal(tool, raw, f"the required argument `{name}` is missing")
    unused = [name for name in properties if name not in values]
    for name in given:
        close = "" if name in properties else did_you_mean(name, unused)
        if close:
            raise _refusal(tool, raw, f"there is no argument `{name}`.{close}")
    return Arguments(values)


def unfenced(text: str) -> str:
    """Return what a code fence around the whole text holds, or the text."""
    text = text.strip()
    first, _, rest = text.partition("\n")
    if not first.startswith("```") or not rest.endswith("```"):
        return text
    return rest.removesuffix("```").strip()


def _required(tool: Tool) -> list[str]:
    names = tool.parameters.get("required")
    return [as_text(name) for name in names] if isinstance(names, Sequence) else []


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """Return a hint at the known name that `name` resembles, or nothing."""
    plain = {_plain(one): one for one in known}
    close = get_close_matches(_plain(name[-100:].rpartition(".")[2]), list(plain), n=1, cutoff=0.7)
    return f" Did you mean `{plain[close[0]]}`?" if close else ""


def quoted(raw: str) -> str:
    """Return the start of what a model sent, for a message to it."""
    shown = _NO_TEXT.sub("\ufffd", raw[:_QUOTED])
    more = f" ... ({len(raw) - _QUOTED} more characters)" if len(raw) > _QUOTED else ""
    return f"{shown}{more}" if raw.strip() else "nothing"


def _parse(tool: Tool, raw: str) -> JsonObject:
    text = unfenced(raw)
    if text in {"", "null"}:
        return {}
    try:
        value = _decode(text)
        if isinstance(value, str):
            value = _decode(value.strip())
    except RecursionError:
        raise _refusal(tool, raw, "they are nested too deeply") from None
    except ValueError as error:
        raise _refusal(tool, raw, f"they are not valid JSON ({error})") from None
    if not isinstance(value, Mapping):
        raise _refusal(tool, raw, "they are not a JSON object")
    return value


def _decode(text: str) -> JsonValue:
    try:
        return _decode_exactly(text)
    except ValueError as error:
        mended = _TRAILING_COMMA.sub(lambda found: found[1] or "", text)
        try:
            return _decode_exactly(mended)
        except ValueError:
            raise error from None


def _decode_exactly(text: str) -> JsonValue:
    # Not strict: raw line breaks within strings are accepted.
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=_object)
    decoded: tuple[JsonValue, int] = decoder.raw_decode(text)
    value, end = decoded
    if text[end:].strip(" \t\r\n}]"):
        raise json.JSONDecodeError("Extra data", text, end)
    return value


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    fields: dict[str, JsonValue] = {}
    for name, value in pairs:
        if fields.setdefault(name, value) != value:
            raise ValueError(f"`{name}` is given twice with different values")
    return fields


def _by_declared_name(properties: JsonObject, given: JsonObject) -> dict[str, JsonValue]:
    renamed = dict(given)
    for name, others in _OTHER_NAMES.items():
        if name not in properties or name in renamed:
            continue
        used = [other for other in others if other in renamed and other not in properties]
        if len(used) == 1:
            renamed[name] = renamed.pop(used[0])
    return renamed


def _value(tool: Tool, name: str, kind: str, value: JsonValue) -> str | int:
    if kind == "integer":
        number = _whole_number(value)
        if number is None:
            raise _refusal(tool, json.dumps(value), f"`{name}` must be a whole number")
        return number
    if not isinstance(value, str):
        raise _refusal(tool, json.dumps(value), f"`{name}` must be a string")
    if _NO_TEXT.search(value):
        why = f"`{name}` holds a NUL or half of a surrogate pair, which is no text"
        raise _refusal(tool, value, why)
    return whole(value)


def _whole_number(value: JsonValue) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"\s*-?[0-9]{1,18}\s*", value):
        return int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _refusal(tool: Tool, raw: str, why: str) -> ToolError:
    properties = as_object(tool.parameters.get("properties"))
    wanted = {name: f"<{as_text(as_object(p).get('type'))}>" for name, p in properties.items()}
    return ToolError(
        f"The arguments of {tool.name} cannot be used: {why}\nYou sent: {quoted(raw)}",
        mend=f"\nSend one JSON object like {json.dumps(wanted)}.",
    )


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
