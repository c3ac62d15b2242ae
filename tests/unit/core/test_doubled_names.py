"""Names that one object of JSON has twice are found, wherever it stands."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.core.json import doubled_name

NAMES = st.text("ab", min_size=1, max_size=3)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('ab{}":', max_size=4),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(NAMES, inside, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    "raw",
    [
        '{"a":1,"a":1}',
        '[{"b":{"a":1,"b":2,"a":3}}]',
        '{"a":1,"\\u0061":2}',
        b'{"a":1, "a":{}}',
    ],
)
def test_a_name_that_is_there_twice_is_found(raw: str | bytes) -> None:
    """However deep, and however it is spelled."""
    assert doubled_name(raw) == "a"


@given(VALUES)
@settings(max_examples=50)
def test_what_is_written_from_values_has_none(value: object) -> None:
    """The same name in two objects is none, nor is one within text."""
    assert doubled_name(json.dumps(value)) is None
    assert doubled_name(json.dumps([{"x": value}, {"x": value}])) is None


@pytest.mark.parametrize("raw", ["", "{", "[" * 100_000, b"\xff", '{"a":1,"a"'])
def test_what_is_no_json_has_none(raw: str | bytes) -> None:
    """It is for the parser to refuse."""
    assert doubled_name(raw) is None
