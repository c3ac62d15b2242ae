"""Values that have to fit a schema of anybody's making."""

from typing import Any

import pytest

from turnout.agent.tools.arguments import read_arguments
from turnout.agent.tools.schema import Schema, UnfitError, fit
from turnout.core.tools import Tool
from turnout.errors import ToolError

NODE: dict[str, Any] = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"value": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}},
        }
    },
    "$ref": "#/$defs/node",
}
NULLABLE = {"anyOf": [{"type": "integer"}, {"type": "null"}]}


def fitted(schema: dict[str, Any], value: Any) -> Any:
    """Return a value as a schema wants it."""
    return fit(Schema.of(schema, schema), value)


def field(schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the schema of an object with the field `a`."""
    return {"type": "object", "properties": {"a": schema}, **more}


@pytest.mark.parametrize(
    ("schema", "sent", "meant"),
    [
        ({"type": "integer"}, "12", 12),
        ({"type": "integer"}, 3.0, 3),
        ({"type": "number"}, " -1.5e3 ", -1500.0),
        ({"type": ["integer", "null"]}, "7", 7),
        ({"type": "boolean"}, "True", True),
        ({"type": "array", "items": {"type": "integer"}}, '["1", 2,]', [1, 2]),
        (field({"type": "boolean"}), '{"a": "false"}', {"a": False}),
        ({"enum": ["asc", "desc"]}, "ASC ", "asc"),
        ({"enum": [1, 2]}, "2", 2),
        (field({"type": "string"}), {"a": None}, {}),
        (field(NULLABLE), {"a": "4"}, {"a": 4}),
        (NODE, {"next": {"next": {"value": "1"}}}, {"next": {"next": {"value": 1}}}),
        ({"oneOf": [{"type": "string"}, field({"type": "integer"})]}, {"a": "1"}, {"a": 1}),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"x": "1"}, {"x": 1}),
    ],
)
def test_what_is_certain_is_mended(schema: dict[str, Any], sent: Any, meant: Any) -> None:
    """At any depth, behind references and in the one alternative that can be meant."""
    found = fitted(schema, sent)
    assert found == meant
    assert type(found) is type(meant)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": ["string", "integer"]}, "12"),
        ({"type": "number"}, 3.0),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "12"),
        ({}, {"a": ["1", None, True, 1.5]}),
        ({"type": "no such type"}, "12"),
        ({"anyOf": [{"minimum": 3}, {"type": "null"}]}, "12"),
        ({"$ref": "https://schemas.example.org/x"}, "12"),
        ({"$ref": "#"}, ["12"]),
        ({"$ref": "#/$defs/none"}, "12"),
        ({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}, "12"),
        (field(NULLABLE), {"a": None}),
        (field({"enum": ["x", None]}), {"a": None}),
        (field({"type": "integer"}), {"a": 1, "b": {"c": "d"}}),
        ({"type": "string", "pattern": "(a+)+$"}, "a" * 40 + "!"),
        ({"properties": 3, "required": "a", "items": [1], "enum": {}, "anyOf": 1}, {"a": 1}),
    ],
)
def test_what_is_admitted_or_unclear_stays_as_it_was_sent(
    schema: dict[str, Any], value: Any
) -> None:
    """Whoever carries the call out judges it; a schema that makes no sense says nothing."""
    assert fitted(schema, value) == value


@pytest.mark.parametrize(
    ("schema", "value", "why"),
    [
        ({"type": "integer"}, "12a", "must be a whole number"),
        ({"type": "integer"}, True, "must be a whole number"),
        ({"type": ["boolean", "array"]}, 1, "must be true or false or an array"),
        ({"type": "string"}, 12, "must be a string"),
        ({"type": "array"}, "a, b", "must be an array"),
        ({"type": "array"}, '["a"', "must be an array"),
        ({"type": "object"}, '{"a": 1, "a": 2}', "must be an object"),
        ({"type": "number"}, float("inf"), "no finite number"),
        ({"enum": ["red", "Red"]}, "RED", 'must be one of "red", "Red"'),
        ({"const": 1}, True, "must be one of 1"),
        (
            field({"type": "string"}, required=["a"]),
            {"a": None},
            "required argument `a` is missing",
        ),
        (field(field({}, required=["a"])), {"a": {}}, "required field `a.a` is missing"),
        (field({}, additionalProperties=False), {"b": 1}, "there is no argument `b`"),
        (field({"type": "array", "items": {"type": "string"}}), {"a": ["x", 1]}, "`a[1]` must be"),
        (field({}), {"a": ["\0"]}, "`a[0]` holds a NUL"),
        (field({}), {"a": {"\ud800": 1}}, "holds a NUL or half of a surrogate pair"),
    ],
)
def test_what_does_not_fit_is_refused_where_it_is(
    schema: dict[str, Any], value: Any, why: str
) -> None:
    """The model reads the place, and what has to stand there."""
    with pytest.raises(UnfitError) as unfit:
        fitted(schema, value)
    assert why in str(unfit.value)


def test_neither_a_deep_value_nor_a_large_schema_makes_a_long_message() -> None:
    """What the model reads stays short, whatever a server declares and a model sends."""
    deep = '{"a": ' * 300 + "1" + "}" * 300
    many = {f"field_{n}": {"enum": ["x" * 900] * 300} for n in range(300)}
    wide = Tool("mcp:big/tool", "", {"type": "object", "properties": many, "required": list(many)})
    for tool, raw in ((Tool("t", "", NODE), deep), (wide, "{}"), (wide, '{"field_7": "y"}')):
        with pytest.raises(ToolError) as refused:
            read_arguments(tool, raw)
        assert len(str(refused.value)) < 5_000
