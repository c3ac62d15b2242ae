"""How each API names a connection of the gateway."""

import pytest

from turnout.core.json import JsonObject
from turnout.errors import GatewayError
from turnout.gateway.exchange import ConnectionAsk, DeclaredTool
from turnout.gateway.wire.connections import connection_ask, declared_tools, server_ask


@pytest.mark.parametrize(
    ("tool", "ask"),
    [
        ({"type": "mcp", "server_label": "git"}, ConnectionAsk("git")),
        ({"type": "mcp", "mcp": {"server": "git"}}, ConnectionAsk("git")),
        ({"type": "mcp", "mcp": {"server_label": "git"}}, ConnectionAsk("git")),
        (
            {"type": "mcp", "server_label": "git", "allowed_tools": ["b", "a", "b"]},
            ConnectionAsk("git", ("b", "a")),
        ),
        (
            {"type": "mcp", "server_label": "git", "allowed_tools": {"tool_names": ["a"]}},
            ConnectionAsk("git", ("a",)),
        ),
        (
            {"type": "mcp", "server_label": "git", "server_url": "https://git.example.org"},
            ConnectionAsk("git", None, "https://git.example.org"),
        ),
        (
            {"type": "mcp", "server_label": "git", "require_approval": {"never": {}}},
            ConnectionAsk("git"),
        ),
        ({"type": "mcp_toolset", "mcp_server_name": "git"}, ConnectionAsk("git")),
        (
            {
                "type": "mcp_toolset",
                "mcp_server_name": "git",
                "default_config": {"enabled": False},
                "configs": {"a": {"enabled": True}, "b": {"enabled": False}, "c": {}},
            },
            ConnectionAsk("git", ("a", "c")),
        ),
        ({"type": "function", "function": {"name": "mcp"}}, None),
        ({"type": "web_search"}, None),
    ],
)
def test_an_entry_of_tools_names_a_connection_or_is_another_tool(
    tool: JsonObject, ask: ConnectionAsk | None
) -> None:
    """In the words of either OpenAI API, or of Anthropic's."""
    assert connection_ask(tool, "tools[0]") == ask


def test_an_entry_of_mcp_servers_names_a_connection() -> None:
    """Its tools may be restricted, or switched off."""
    assert server_ask({"type": "url", "name": "git"}, "mcp_servers.0") == ConnectionAsk("git")
    off: JsonObject = {"name": "git", "tool_configuration": {"enabled": False}}
    assert server_ask(off, "mcp_servers.0") == ConnectionAsk("git", ())
    some: JsonObject = {"name": "git", "tool_configuration": {"allowed_tools": ["a"]}}
    assert server_ask(some, "mcp_servers.0") == ConnectionAsk("git", ("a",))


@pytest.mark.parametrize(
    ("tool", "param"),
    [
        ({"type": "mcp"}, "tools[0].server_label"),
        ({"type": "mcp", "mcp": {}}, "tools[0].mcp.server"),
        ({"type": "mcp", "mcp": []}, "tools[0].mcp"),
        ({"type": "mcp", "server_label": "a/b"}, "tools[0].server_label"),
        ({"type": "mcp", "server_label": 3}, "tools[0].server_label"),
        (
            {"type": "mcp", "server_label": "git", "allowed_tools": ["a/b"]},
            "tools[0].allowed_tools[0]",
        ),
        ({"type": "mcp", "server_label": "git", "allowed_tools": "a"}, "tools[0].allowed_tools"),
        (
            {"type": "mcp", "server_label": "git", "allowed_tools": ["a"] * 300},
            "tools[0].allowed_tools",
        ),
        ({"type": "mcp", "server_label": "git", "headers": {"a": "b"}}, "tools[0].headers"),
        ({"type": "mcp", "server_label": "git", "authorization": "x"}, "tools[0].authorization"),
        (
            {"type": "mcp", "server_label": "git", "require_approval": {"always": {}}},
            "tools[0].require_approval",
        ),
        (
            {
                "type": "mcp_toolset",
                "mcp_server_name": "git",
                "configs": {"a": {"enabled": False}},
            },
            "tools[0].configs",
        ),
    ],
)
def test_what_is_wrong_or_not_done_is_refused_by_its_field(tool: JsonObject, param: str) -> None:
    """With 400."""
    with pytest.raises(GatewayError) as failure:
        connection_ask(tool, "tools[0]")
    assert (failure.value.status, failure.value.param) == (400, param)


def test_policies_judge_a_whole_connection_or_each_tool_that_is_named() -> None:
    """By the names that a policy lists."""
    assert declared_tools(ConnectionAsk("git")) == (DeclaredTool("mcp:git/*"),)
    assert declared_tools(ConnectionAsk("git", ("a", "b"))) == (
        DeclaredTool("mcp:git/a"),
        DeclaredTool("mcp:git/b"),
    )
