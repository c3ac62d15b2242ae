"""A tool rule judges names, before a model is chosen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.core.policies import ToolMode, ToolRule
from turnout.gateway.tool_rules import ToolJudgement, judge

NAMES = st.lists(st.sampled_from(["read_file", "run_tests", "shell", "mcp:git/push", ""]))


def test_enforce_refuses_the_first_tool_outside_the_list() -> None:
    """The refusal names a tool, the receipt gets all of them once."""
    rule = ToolRule("enforce", ("read_file",))
    judged = judge(rule, ["read_file", "shell", "curl", "shell"])
    assert judged == ToolJudgement("shell", ("shell", "curl"))


def test_a_dry_run_records_and_lets_pass() -> None:
    """The list is judged and nothing is refused."""
    judged = judge(ToolRule("dry_run", ("read_file",)), ["shell"])
    assert judged == ToolJudgement(None, ("shell",))


def test_any_knows_no_outside() -> None:
    """Without a list nothing is outside of it."""
    assert judge(ToolRule("any", ("read_file",)), ["shell"]) == ToolJudgement(None, ())


@pytest.mark.parametrize(
    ("entry", "name", "admitted"),
    [
        ("read_file", "read_file", True),
        ("read_file", "Read_File", False),
        ("read_file", "read_file2", False),
        ("read_*", "read_file", False),
        ("*", "read_file", False),
        ("mcp:git/*", "mcp:git/push", True),
        ("mcp:git/*", "mcp:git/", False),
        ("mcp:git/*", "mcp:github/push", False),
        ("mcp:*", "mcp:git/push", False),
        ("mcp:/*", "mcp:/push", False),
        ("mcp:git/*", "mcp:git/*", True),
    ],
)
def test_names_match_exactly_and_servers_as_a_whole(entry: str, name: str, admitted: bool) -> None:
    """Only a pattern of a whole MCP server stands for more than itself."""
    assert (judge(ToolRule("enforce", (entry,)), [name]).refused is None) == admitted


@given(mode=st.sampled_from(["any", "dry_run", "enforce"]), allow=NAMES, declared=NAMES)
def test_only_enforce_refuses_and_only_what_is_outside(
    mode: ToolMode, allow: list[str], declared: list[str]
) -> None:
    """What is refused is outside; what is listed is not."""
    judged = judge(ToolRule(mode, tuple(allow)), declared)
    assert (judged.refused is not None) == (mode == "enforce" and bool(judged.outside))
    assert judged.refused is None or judged.refused == judged.outside[0]
    assert not set(judged.outside) & set(allow)
    assert set(judged.outside) <= set(declared)
