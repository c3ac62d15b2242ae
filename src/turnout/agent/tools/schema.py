"""Values read by a JSON Schema that may be a stranger's: slips mended, what does not fit refused.

A value that the schema admits stays as it is. What is looked at are types, choices, and the fields
of objects; patterns, lengths and ranges are left to whoever carries the call out.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from turnout.agent.tools.decoding import decode
from turnout.agent.tools.marks import whole
from turnout.core.json import JsonObject, JsonValue, as_object, as_objects

__all__ = ["Schema", "UnfitError", "fit"]

_NO_TEXT: Final = re.compile("[\0\ud800-\udfff]")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?(?:[eE][+-]?[0-9]{1,2})?")
_WHOLE: Final = re.compile(r"-?[0-9]{1,18}")
_DEEPEST: Final = 60
_MOST_REFERENCES: Final = 16
_MOST_CHOICES: Final = 20
_ALTERNATIVES: Final = ("anyOf", "oneOf")
_LONGEST_SHOWN: Final = 60

_IN_WORDS: Final[Mapping[str, str]] = {
    "array": "an array",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}


class UnfitError(Exception):
    """A value does not fit; its text says why, to a model."""

    def __init__(self, why: str, value: JsonValue) -> None:
        super().__init__(why)
        self.value = value
        """What was sent there."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema, or a part of one; whatever in it is no schema says nothing."""

    root: JsonObject
    """The whole: references lead into it."""
    here: JsonObject

    @classmethod
    def of(cls, root: JsonObject, part: JsonValue) -> "Schema":
        """Return a part of a schema, references followed."""
        here = as_object(part)
        for _ in range(_MOST_REFERENCES):
            reference = here.get("$ref")
            if not isinstance(reference, str):
                return cls(root, here)
            here = root if reference.startswith("#") else {}
            for step in reference.partition("#")[2].split("/")[1:]:
                here = as_object(here.get(step.replace("~1", "/").replace("~0", "~")))
        return cls(root, {})

    def at(self, part: JsonValue) -> "Schema":
        """Return a part of the same whole."""
        return Schema.of(self.root, part)

    @property
    def fields(self) -> Mapping[str, "Schema"]:
        """What it says of the fields of an object."""
        declared = as_object(self.here.get("properties"))
        return {name: self.at(part) for name, part in declared.items()}

    @property
    def required(self) -> Sequence[str]:
        """The fields that an object must have."""
        names = self.here.get("required")
        return [n for n in names if isinstance(n, str)] if isinstance(names, list | tuple) else []

    @property
    def closed(self) -> bool:
        """Whether an object may have no other fields than those that are declared."""
        others, patterns = (self.here.get(f"{k}Properties") for k in ("additional", "pattern"))
        return others is False and not patterns

    @property
    def kinds(self) -> tuple[str, ...]:
        """The types that are admitted; none where nothing certain is said of them."""
        own = _kinds(self.here)
        if own or "type" in self.here:
            return own
        each = [_kinds(alternative.here) for alternative in self.alternatives]
        return tuple(dict.fromkeys(kind for some in each for kind in some)) if all(each) else ()

    @property
    def choices(self) -> Sequence[JsonValue]:
        """The values that are admitted; none where any is."""
        if "const" in self.here:
            return (self.here["const"],)
        choices = self.here.get("enum")
        return choices if isinstance(choices, list | tuple) else ()

    @property
    def alternatives(self) -> Sequence["Schema"]:
        """Schemas of which a value has to fit one; none where there is only this one."""
        for key in _ALTERNATIVES:
            if parts := as_objects(self.here.get(key)):
                return [self.at(part) for part in parts]
        return ()

    @property
    def may_be_left_out(self) -> bool:
        """Whether null can only mean that there is no value."""
        return bool(self.kinds) and "null" not in self.kinds and None not in self.choices

    def meant_for(self, value: JsonValue) -> "Schema":
        """Return the one alternative that a value can be meant for, or the schema as it is."""
        alternatives = self.alternatives
        if not all(each.kinds for each in alternatives):
            return self
        meant = [each for each in alternatives if any(_is(kind, value) for kind in each.kinds)]
        if not meant:
            meant = [each for each in alternatives if each.kinds != ("null",)]
        if len(meant) != 1:
            return self
        own = {key: said for key, said in self.here.items() if key not in _ALTERNATIVES}
        return Schema(self.root, {**own, **meant[0].here})

    def __str__(self) -> str:
        """Return what a value has to be, short enough for an example."""
        words = [_shown(choice) for choice in self.choices[:4]] or self.kinds or ("any",)
        return f"<{'|'.join(words)}>"


def fit(schema: Schema, value: JsonValue, path: str = "", depth: int = 0) -> JsonValue:
    """Return `value`, which is at `path`, as it is wanted; `UnfitError` where it does not fit.

    Mended are: numbers, booleans, arrays and objects written as strings, whole numbers written with
    a fraction of zero, the case of a choice, and null for a field that may be left out.
    """
    if depth > _DEEPEST:
        raise UnfitError(f"`{path[:_LONGEST_SHOWN]}...` is nested too deeply", None)
    schema = schema.meant_for(value)
    value = _as_choice(schema, _typed(schema, value, path), path)
    if isinstance(value, str):
        return _text(value, path)
    if isinstance(value, float) and not math.isfinite(value):
        raise UnfitError(f"`{path}` is no finite number", str(value))
    if isinstance(value, Mapping):
        return _fields(schema, value, path, depth + 1)
    if isinstance(value, Sequence):
        items = schema.at(schema.here.get("items"))
        return [fit(items, item, f"{path}[{at}]", depth + 1) for at, item in enumerate(value)]
    return value


def _fields(schema: Schema, value: JsonObject, path: str, depth: int) -> JsonObject:
    declared, others = schema.fields, schema.at(schema.here.get("additionalProperties"))
    fitted: dict[str, JsonValue] = {}
    for name, item in value.items():
        known = declared.get(name)
        if known is None and schema.closed:
            raise UnfitError(f"there is no {_field(path, name)}", value)
        if known is None or item is not None or not known.may_be_left_out:
            place = _below(path, name)
            fitted[_text(name, place)] = fit(known or others, item, place, depth)
    for name in schema.required:
        if name not in fitted:
            raise UnfitError(f"the required {_field(path, name)} is missing", value)
    return fitted


def _typed(schema: Schema, value: JsonValue, path: str) -> JsonValue:
    kinds = schema.kinds
    if not kinds:
        return value
    if any(_is(kind, value) for kind in kinds):
        is_whole = isinstance(value, float) and "integer" in kinds and "number" not in kinds
        return int(value) if is_whole and isinstance(value, float) else value
    mended: list[JsonValue] = []
    for found in (found for kind in kinds for found in _mended(kind, value)):
        mended += [] if any(_same(found, other) for other in mended) else [found]
    if len(mended) == 1:
        return mended[0]
    raise UnfitError(f"`{path}` must be {' or '.join(_IN_WORDS[kind] for kind in kinds)}", value)


def _as_choice(schema: Schema, value: JsonValue, path: str) -> JsonValue:
    choices = schema.choices
    if not choices or any(_same(value, choice) for choice in choices):
        return value
    alike = [choice for choice in choices if _alike(value, choice)]
    if len(alike) == 1:
        return alike[0]
    more = ", ..." if len(choices) > _MOST_CHOICES else ""
    listed = ", ".join(map(_shown, choices[:_MOST_CHOICES]))
    raise UnfitError(f"`{path}` must be one of {listed}{more}", value)


def _kinds(here: JsonObject) -> tuple[str, ...]:
    kinds = here.get("type")
    if isinstance(kinds, str):
        kinds = (kinds,)
    if not isinstance(kinds, list | tuple):
        return ()
    known = tuple(kind for kind in kinds if isinstance(kind, str) and kind in _IN_WORDS)
    return known if len(known) == len(kinds) else ()


def _text(value: str, path: str) -> str:
    if _NO_TEXT.search(value):
        why = f"`{path}` holds a NUL or half of a surrogate pair, which is no text"
        raise UnfitError(why, value)
    return whole(value)


def _below(path: str, name: str) -> str:
    shown = name if len(name) <= _LONGEST_SHOWN else f"{name[:_LONGEST_SHOWN]}..."
    return f"{path}.{shown}" if path else shown


def _field(path: str, name: str) -> str:
    return f"{'field' if path else 'argument'} `{_below(path, name)}`"


def _is(kind: str, value: JsonValue) -> bool:
    """Whether a value is of a type, as JSON Schema sees it."""
    match value:
        case None:
            return kind == "null"
        case bool():
            return kind == "boolean"
        case int():
            return kind in {"integer", "number"}
        case float():
            return kind == "number" or (kind == "integer" and value.is_integer())
        case str():
            return kind == "string"
        case Mapping():
            return kind == "object"
        case _:
            return kind == "array"


def _mended(kind: str, value: JsonValue) -> Iterator[JsonValue]:
    """Yield what a string can only mean where a value of this type is wanted."""
    if not isinstance(value, str):
        return
    text = value.strip()
    match kind:
        case "integer" if _WHOLE.fullmatch(text):
            yield int(text)
        case "number" if _NUMBER.fullmatch(text):
            yield int(text) if _WHOLE.fullmatch(text) else float(text)
        case "boolean" if text.lower() in {"true", "false"}:
            yield text.lower() == "true"
        case "array" | "object" if text[:1] == ("[" if kind == "array" else "{"):
            try:
                yield decode(text)
            except (ValueError, RecursionError):
                return


def _same(value: JsonValue, choice: JsonValue) -> bool:
    """Whether two values are one in JSON, where true is not 1."""
    return value == choice and isinstance(value, bool) == isinstance(choice, bool)


def _alike(value: JsonValue, choice: JsonValue) -> bool:
    if isinstance(value, str) and isinstance(choice, str):
        return value.strip().casefold() == choice.casefold()
    return isinstance(value, str) and any(_same(m, choice) for m in _meant_for(choice, value))


def _meant_for(choice: JsonValue, value: str) -> Iterator[JsonValue]:
    for kind in ("boolean", "integer", "number"):
        if _is(kind, choice):
            yield from _mended(kind, value)
            return


def _shown(choice: JsonValue) -> str:
    text = json.dumps(choice, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
