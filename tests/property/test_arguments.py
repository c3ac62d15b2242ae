"""Arguments of any shape under schemas of anybody's making."""

import json
from typing import Any

import jsonschema_rs
from hypothesis import given
from hypothesis import strategies as st

from turnout.agent.tools.arguments import read_arguments
from turnout.agent.tools.schema import Schema, UnfitError, fit
from turnout.core.tools import Tool
from turnout.errors import ToolError

TEXT = st.text(st.characters(exclude_characters="\0<", exclude_categories=["Cs"]), max_size=8)
NAMES = st.sampled_from(["a", "b", "path", "items", "$ref", "type"])
SCALARS = st.none() | st.booleans() | st.integers(-(10**6), 10**6) | TEXT
JSON = st.recursive(
    SCALARS | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)
KINDS = ("string", "integer", "number", "boolean", "null", "array", "object")
SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([{"type": kind} for kind in KINDS])
    | st.builds(
        lambda kinds: {"type": kinds}, st.lists(st.sampled_from(KINDS), min_size=1, unique=True)
    )
    | st.builds(lambda choices: {"enum": choices}, st.lists(SCALARS, min_size=1, max_size=3)),
    lambda inner: (
        st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(lambda parts: {"anyOf": parts}, st.lists(inner, min_size=1, max_size=3))
        | st.builds(
            lambda fields, needed, others: {
                "type": "object",
                "properties": fields,
                "required": [name for name in fields if name in needed],
                "additionalProperties": others,
            },
            st.dictionaries(NAMES, inner, max_size=3),
            st.sets(NAMES),
            st.booleans() | inner,
        )
    ),
    max_leaves=6,
)


def as_strings(value: Any) -> Any:
    """Return a value with what is no string, no object and no null written as a string."""
    if isinstance(value, dict):
        return {name: as_strings(item) for name, item in value.items()}
    return value if isinstance(value, str) or value is None else json.dumps(value)


@given(schema=SCHEMAS, value=JSON)
def test_what_a_schema_admits_is_never_changed(schema: dict[str, Any], value: Any) -> None:
    """An independent validator says what is admitted; a whole number may lose a fraction of 0."""
    if jsonschema_rs.is_valid(schema, value):
        assert fit(Schema.of(schema, schema), value) == value


@given(schema=SCHEMAS, value=JSON)
def test_what_was_mended_is_mended_once(schema: dict[str, Any], value: Any) -> None:
    """A fitted value fits, and any other is refused: nothing else comes out."""
    whole = Schema.of(schema, schema)
    try:
        once = fit(whole, value)
    except UnfitError:
        return
    assert fit(whole, once) == once


@given(values=st.dictionaries(NAMES, st.booleans() | st.integers() | st.lists(TEXT), max_size=4))
def test_values_that_were_written_as_strings_come_back(values: dict[str, Any]) -> None:
    """For every type that a string can stand for without doubt."""
    kinds = {bool: "boolean", int: "integer", list: "array"}
    fields = {name: {"type": kinds[type(value)]} for name, value in values.items()}
    schema: Any = {"type": "object", "properties": fields, "required": list(fields)}
    small = {n: v % 10**15 if type(v) is int else v for n, v in values.items()}
    assert fit(Schema.of(schema, schema), as_strings(small)) == small


@given(schema=JSON | SCHEMAS, raw=st.text(max_size=40) | st.builds(json.dumps, JSON))
def test_any_arguments_under_any_schema_are_read_or_refused(schema: Any, raw: str) -> None:
    """Whatever a server declares and a model sends, a model can read what was wrong."""
    parameters = schema if isinstance(schema, dict) else {"type": "object", "properties": schema}
    try:
        said = json.dumps(
            read_arguments(Tool("mcp:any/tool", "", parameters), raw).values, allow_nan=False
        )
    except ToolError as error:
        said = f"{error}"
    assert said.startswith(("{", "The arguments of mcp__any__tool cannot be used: "))
    said.encode()
