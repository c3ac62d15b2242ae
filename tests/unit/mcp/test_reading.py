"""What a server says is fit for a model, whatever it said."""

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import types

from turnout.core.govern.connections import Connection
from turnout.mcp.reading import Scrubber, read_result, read_tool

SECRET = "s3cret/token=="
PLAIN = Connection("notes", url="http://notes.example.org/mcp", longest_result=200)
SCRUB = Scrubber((SECRET,))


def tool(**changed: Any) -> types.Tool:
    """Return a tool that could be shown."""
    return types.Tool(**{"name": "read", "input_schema": {"type": "object"}, **changed})


def said(*texts: str) -> types.CallToolResult:
    """Return a result of texts."""
    return types.CallToolResult(content=[types.TextContent(text=text) for text in texts])


@pytest.mark.parametrize(
    "form", [SECRET, "s3cret%2Ftoken%3D%3D", b64encode(SECRET.encode()).decode()]
)
def test_a_credential_that_a_server_repeats_is_replaced(form: str) -> None:
    """In each of the forms in which it may come back."""
    outcome = read_result(said(f"you sent {form}!"), PLAIN, SCRUB)
    assert outcome.text == "you sent [credential]!"


def test_a_credential_is_found_though_invisible_characters_divide_it() -> None:
    """What is invisible to people is no way around the search."""
    assert SCRUB("s3cret\u200b/to\x00ken==") == "[credential]"


@given(st.text(st.characters(exclude_categories=()), max_size=200))
def test_no_text_of_a_server_holds_what_cannot_be_seen_or_encoded(text: str) -> None:
    """Escape sequences, bidirectional marks and halves of surrogates never reach a prompt."""
    clean = SCRUB(text)
    clean.encode()
    assert not set(clean) & {"\x1b", "\x00", "\r", "\u202e", "\u200b", "\ufeff", "\x9b"}


def test_ordinary_text_of_any_language_stays_as_it_is() -> None:
    """Only what cannot be seen is removed."""
    text = "naïve\tΩ 漢字 🙂\nשלום"
    assert SCRUB(text) == text


def test_a_long_result_is_cut_in_the_middle_and_says_so() -> None:
    """The beginning and the end of a result matter most."""
    outcome = read_result(said("a" * 1_000 + "end"), PLAIN, SCRUB)
    assert outcome.text.startswith("a" * 150)
    assert outcome.text.endswith("end")
    assert "[803 characters left out]" in outcome.text


def test_every_kind_of_content_is_told_of() -> None:
    """What cannot be shown is named, not lost."""
    content: list[types.ContentBlock] = [
        types.TextContent(text="words"),
        types.ImageContent(data="AAAA", mime_type="image/png"),
        types.ResourceLink(name="log", uri="file:///log"),
        types.EmbeddedResource(resource=types.TextResourceContents(uri="file:///a", text="inside")),
    ]
    outcome = read_result(types.CallToolResult(content=content, is_error=True), PLAIN, SCRUB)
    assert outcome.is_error
    lines = outcome.text.splitlines()
    assert lines == [
        "words",
        "[image of type image/png, not shown]",
        "log: file:///log",
        "file:///a:",
        "inside",
    ]


def test_structured_content_stands_in_where_there_is_no_text() -> None:
    """Servers need not repeat as text what they return as data."""
    result = types.CallToolResult(content=[], structured_content={"n": 1})
    assert json.loads(read_result(result, PLAIN, SCRUB).text) == {"n": 1}


@pytest.mark.parametrize("name", ["", "a b", "a/b", "x" * 129, "naïve", "a\nb"])
def test_a_tool_whose_name_no_model_takes_is_left_out(name: str) -> None:
    """A name is part of policies and of prompts."""
    assert read_tool(tool(name=name), SCRUB) is None


def test_a_schema_that_is_too_large_or_too_deep_or_no_object_is_left_out() -> None:
    """A prompt is not for a server to fill."""
    deep: dict[str, Any] = {"type": "object"}
    for _ in range(100):
        deep = {"type": "object", "properties": {"x": deep}}
    large = {"type": "object", "description": "x" * 40_000}
    for schema in (deep, large, {"type": "string"}, {}):
        assert read_tool(tool(input_schema=schema), SCRUB) is None


def test_descriptions_inside_a_schema_are_cleaned_too() -> None:
    """They are shown to the model like the tool's own."""
    schema = {"type": "object", "properties": {"a": {"description": f"\x1b[2J{SECRET}"}}}
    read = read_tool(tool(input_schema=schema, description="x" * 9_000), SCRUB)
    assert read is not None
    assert read.parameters["properties"] == {"a": {"description": "[2J[credential]"}}
    assert len(read.description) == 4_000
