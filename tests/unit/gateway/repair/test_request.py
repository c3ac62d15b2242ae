"""A request's body as one deployment needs it, and otherwise as the client sent it."""

from dataclasses import replace
from typing import Literal

import orjson
import pytest

from turnout.core.json import JsonObject, as_object, as_objects
from turnout.gateway.catalog import Deployment
from turnout.gateway.exchange import DeclaredTool, InferenceRequest
from turnout.gateway.repair import emulates_tool_choice, prepare_body
from turnout.testing.exchange import PLAIN_REQUEST, deployment

PLAIN = replace(deployment("acme/m"), upstream_name="vendor/m-1")
LOOSE = replace(PLAIN, enforces_tool_choice=False)
LOOK: JsonObject = {
    "name": "look",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
}
FINISH: JsonObject = {"name": "finish"}


def request(choice: object = "required", *functions: JsonObject) -> InferenceRequest:
    """Return a request that declares `functions`."""
    declared = functions or (LOOK, FINISH)
    body = {
        "model": "auto",
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"type": "function", "function": f} for f in declared],
        "tool_choice": choice,
        "x_unknown": {"b": 1, "a": 2},
    }
    name = choice if isinstance(choice, str) else choice["function"]["name"]
    tools = tuple(DeclaredTool(str(f["name"])) for f in declared)
    return replace(PLAIN_REQUEST, body=body, tools=tools, tool_choice=name)


def prepared(asked: InferenceRequest, by: Deployment) -> JsonObject:
    """Return the body that a deployment gets of a client that speaks the same shape."""
    return prepare_body(asked.body, asked, by)


def schema_of(body: JsonObject) -> JsonObject:
    """Return the schema that a body asks the reply to follow."""
    wanted = as_object(as_object(body["response_format"])["json_schema"])
    assert wanted["strict"] is True
    return as_object(wanted["schema"])


@pytest.mark.cases
def test_only_the_model_is_changed_and_no_field_moves() -> None:
    """The same request is the same bytes each time, or prompt caches never hit."""
    asked = request("auto")
    sent = prepared(asked, PLAIN)
    assert sent == {**asked.body, "model": "vendor/m-1"}
    assert list(sent) == list(asked.body)
    assert orjson.dumps(sent) == orjson.dumps(prepared(asked, PLAIN))


@pytest.mark.parametrize(
    ("sent", "field", "expected"),
    [
        ({"max_tokens": 5}, "max_completion_tokens", {"max_completion_tokens": 5}),
        ({"max_completion_tokens": 5}, "max_tokens", {"max_tokens": 5}),
        ({"max_tokens": 5, "max_completion_tokens": 4}, "max_tokens", {"max_tokens": 4}),
        ({"max_tokens": 5}, "as_sent", {"max_tokens": 5}),
        ({}, "max_tokens", {}),
    ],
)
def test_the_limit_goes_under_the_name_that_the_server_knows(
    sent: dict[str, int],
    field: Literal["max_tokens", "max_completion_tokens", "as_sent"],
    expected: dict[str, int],
) -> None:
    """One name, the newer one's value."""
    asked = replace(PLAIN_REQUEST, body={**PLAIN_REQUEST.body, **sent})
    body = prepared(asked, replace(PLAIN, max_tokens_field=field))
    limits = {name: body[name] for name in body if name.startswith("max_")}
    assert limits == expected


def test_what_a_deployment_refuses_is_left_out() -> None:
    """The catalog lists it."""
    asked = replace(PLAIN_REQUEST, body={**PLAIN_REQUEST.body, "seed": 1, "user": "u"})
    assert "seed" not in prepared(asked, replace(PLAIN, leaves_out=frozenset({"seed"})))


def test_a_prompt_is_marked_for_caching_where_that_is_wanted() -> None:
    """After the instructions and at the end; the client's own marks count more."""
    said = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}]
    asked = replace(PLAIN_REQUEST, body={"messages": said}, caching=True)
    marking = replace(PLAIN, caching="marks")
    mark = {"cache_control": {"type": "ephemeral"}}
    assert prepared(asked, marking)["messages"] == [
        {"role": "system", "content": [{"type": "text", "text": "Be kind.", **mark}]},
        {"role": "user", "content": [{"type": "text", "text": "Hi", **mark}]},
    ]
    assert prepared(asked, PLAIN)["messages"] == said
    assert prepared(replace(asked, caching=False), marking)["messages"] == said
    own = [{"role": "user", "content": [{"type": "text", "text": "Hi", **mark}]}, *said]
    assert prepared(replace(asked, body={"messages": own}), marking)["messages"] == own


def test_a_stream_is_asked_for_its_usage_and_keeps_its_options() -> None:
    """Usage is needed for the receipt whether or not the client wants it."""
    body = {**PLAIN_REQUEST.body, "stream": True, "stream_options": {"x": 1}}
    sent = prepared(replace(PLAIN_REQUEST, body=body, stream=True), PLAIN)
    assert sent["stream_options"] == {"x": 1, "include_usage": True}
    assert "stream_options" not in prepared(PLAIN_REQUEST, PLAIN)


@pytest.mark.parametrize(
    ("thinking", "added"), [(True, {"effort": "high"}), (False, {"effort": "none"}), (None, {})]
)
def test_thinking_becomes_what_the_catalog_says(thinking: bool | None, added: JsonObject) -> None:
    """Only a deployment that declares the fields gets them."""
    able = replace(PLAIN, thinking_on={"effort": "high"}, thinking_off={"effort": "none"})
    asked = replace(PLAIN_REQUEST, thinking=thinking)
    assert prepared(asked, able) == {**asked.body, "model": "vendor/m-1", **added}
    assert "effort" not in prepared(asked, PLAIN)


def test_a_required_call_becomes_one_alternative_for_each_tool() -> None:
    """The tools stay declared, the choice is made a schema."""
    sent = prepared(request("required"), LOOSE)
    alternatives = as_objects(schema_of(sent)["anyOf"])
    names = [as_object(a["properties"])["name"] for a in alternatives]
    assert names == [{"const": "look"}, {"const": "finish"}]
    assert as_object(alternatives[0]["properties"])["arguments"] == LOOK["parameters"]
    assert "tool_choice" not in sent
    assert "tools" in sent


def test_a_named_tool_is_the_only_alternative() -> None:
    """A named choice leaves nothing to choose."""
    named = {"type": "function", "function": {"name": "finish"}}
    schema = schema_of(prepared(request(named), LOOSE))
    assert as_object(schema["properties"])["name"] == {"const": "finish"}
    assert as_object(schema["properties"])["arguments"] == {"type": "object"}


def test_references_still_point_to_their_definitions() -> None:
    """A parameter schema keeps its meaning inside the larger one."""
    parameters: JsonObject = {
        "$defs": {"P": {"type": "string"}},
        "type": "object",
        "properties": {"path": {"$ref": "#/$defs/P"}, "self": {"$ref": "#"}},
    }
    schema = schema_of(prepared(request("look", {**LOOK, "parameters": parameters}), LOOSE))
    moved = as_object(as_object(schema["$defs"])["arguments_0"])
    assert as_object(schema["properties"])["arguments"] == {"$ref": "#/$defs/arguments_0"}
    assert moved["properties"] == {
        "path": {"$ref": "#/$defs/arguments_0/$defs/P"},
        "self": {"$ref": "#/$defs/arguments_0"},
    }


@pytest.mark.parametrize(
    ("asked", "by"),
    [
        (request("auto"), LOOSE),
        (request("none"), LOOSE),
        (request("required"), PLAIN),
        (request("required"), replace(LOOSE, json_schema=False)),
        (replace(request("required"), wants_json_schema=True), LOOSE),
    ],
)
def test_the_choice_is_sent_as_it_is_elsewhere(asked: InferenceRequest, by: Deployment) -> None:
    """Nothing is emulated that is enforced, not wanted, or cannot be."""
    assert not emulates_tool_choice(asked, by)
    assert prepared(asked, by)["tool_choice"] == asked.body["tool_choice"]
