"""Names of tools as models know them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.core.tools import function_name

NAMES = st.text(st.characters(exclude_characters="/"), min_size=1, max_size=150)
SERVERS = st.from_regex(r"[a-z][a-z0-9-]{0,15}", fullmatch=True)


@pytest.mark.parametrize(
    ("tool", "function"),
    [
        ("read_file", "read_file"),
        ("mcp:git/push", "mcp__git__push"),
        ("mcp:my-git/push_all-1", "mcp__my-git__push_all-1"),
    ],
)
def test_an_ordinary_name_stays_readable(tool: str, function: str) -> None:
    """The form is the one that other agents use."""
    assert function_name(tool) == function


@given(server=SERVERS, name=NAMES)
def test_every_api_takes_the_name(server: str, name: str) -> None:
    """Letters, digits, `_` and `-`, at most 64 of them."""
    assert re.fullmatch(r"mcp__[A-Za-z0-9_-]{1,59}", function_name(f"mcp:{server}/{name}"))


@given(tools=st.sets(st.tuples(SERVERS, NAMES), max_size=20))
def test_names_that_differ_stay_apart(tools: set[tuple[str, str]]) -> None:
    """Also where they differ only in what has to be replaced or left out."""
    written = {f"mcp:{server}/{name}" for server, name in tools}
    written |= {f"{name}." for name in written} | {f"{name}:" for name in written}
    assert len({function_name(name) for name in written}) == len(written)
