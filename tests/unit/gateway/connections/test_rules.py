"""How a policy's list judges a request for a whole connection."""

import pytest

from turnout.core.policies import ToolRule
from turnout.gateway.tool_rules import judge


@pytest.mark.parametrize(
    ("allow", "refused"),
    [
        (("mcp:git/*",), None),
        (("mcp:git/read",), None),
        (("mcp:git/read", "shell"), None),
        (("mcp:github/read",), "mcp:git/*"),
        (("git", "mcp:git"), "mcp:git/*"),
        ((), "mcp:git/*"),
    ],
)
def test_all_tools_of_a_server_may_be_asked_for_where_any_is_listed(
    allow: tuple[str, ...], refused: str | None
) -> None:
    """The model is shown only those that are; a server that is not listed is refused."""
    assert judge(ToolRule("enforce", allow), ["mcp:git/*"]).refused == refused
