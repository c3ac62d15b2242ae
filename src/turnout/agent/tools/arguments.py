"""A model's arguments, read as it meant them where that is certain and refused where it is not."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches

from turnout.agent.tools.base import Arguments
from turnout.agent.tools.decoding import decode
from turnout.agent.tools.schema import Schema, UnfitError, fit
from turnout.core.json import JsonObject, JsonValue, as_object
from turnout.core.tools import Tool, function_name
from turnout.errors import ToolError

__all__ = ["did_you_mean", "quoted", "read_arguments", "unfenced"]

_QUOTED = 200
_MOST_SHOWN = 10
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

    Mended are: a code fence around the JSON, JSON within a JSON string, the usual other names of an
    argument, and what `decode` and `fit` mend.
    """
    schema = Schema.of(tool.parameters, tool.parameters)
    declared = schema.fields
    given = _by_declared_name(declared, _parse(tool, raw))
    hint = _misspelt(given, declared)
    try:
        fitted = as_object(fit(schema, given))
    except UnfitError as error:
        sent = raw if error.value is given else json.dumps(error.value)
        raise _refusal(tool, sent, f"{error}; {hint}" if hint else str(error)) from None
    if hint and "additionalProperties" not in tool.parameters:
        raise _refusal(tool, raw, hint)
    return Arguments(fitted)


def _misspelt(given: Collection[str], declared: Collection[str]) -> str:
    """Say which argument that is not declared was meant for one that is, or nothing."""
    unused = [name for name in declared if name not in given]
    for name in given:
        close = "" if name in declared else did_you_mean(name, unused)
        if close:
            return f"there is no argument `{quoted(name)}`.{close}"
    return ""


def unfenced(text: str) -> str:
    """Return what a code fence around the whole text holds, or the text."""
    text = text.strip()
    first, _, rest = text.partition("\n")
    if not first.startswith("```") or not rest.endswith("```"):
        return text
    return rest.removesuffix("```").strip()


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
        value = decode(text)
        if isinstance(value, str):
            value = decode(value.strip())
    except RecursionError:
        raise _refusal(tool, raw, "they are nested too deeply") from None
    except ValueError as error:
        raise _refusal(tool, raw, f"they are not valid JSON ({error})") from None
    if not isinstance(value, Mapping):
        raise _refusal(tool, raw, "they are not a JSON object")
    return value


def _by_declared_name(properties: Collection[str], given: JsonObject) -> dict[str, JsonValue]:
    renamed = dict(given)
    for name, others in _OTHER_NAMES.items():
        if name not in properties or name in renamed:
            continue
        used = [other for other in others if other in renamed and other not in properties]
        if len(used) == 1:
            renamed[name] = renamed.pop(used[0])
    return renamed


def _refusal(tool: Tool, raw: str, why: str) -> ToolError:
    schema = Schema.of(tool.parameters, tool.parameters)
    needed = [name for name in schema.fields if name in schema.required]
    shown = list(dict.fromkeys([*needed, *schema.fields]))[:_MOST_SHOWN]
    wanted = {quoted(name): str(schema.fields[name]) for name in shown}
    return ToolError(
        f"The arguments of {function_name(tool.name)} cannot be used: {why}\n"
        f"You sent: {quoted(raw)}",
        mend=f"\nSend one JSON object like {json.dumps(wanted, ensure_ascii=False)}.",
    )


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
