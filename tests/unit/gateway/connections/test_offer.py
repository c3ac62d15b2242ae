"""What a request's connections give to the model."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.core.govern.connections import ToolOutcome
from turnout.core.policies import ToolRule
from turnout.errors import GatewayError
from turnout.gateway.connections.offer import Place, function_name, make_offer
from turnout.gateway.exchange import ConnectionAsk, DeclaredTool
from turnout.testing.connections import FakeConnections
from turnout.testing.exchange import PLAIN_REQUEST


def nothing(_: object) -> ToolOutcome:
    """Return an empty result."""
    return ToolOutcome("")


CONNECTIONS = FakeConnections(
    {"git": {"push": nothing, "read": nothing}, "web": {"read": nothing}, "gone": {}},
    read_only=frozenset({"read"}),
)


def asking(*asks: ConnectionAsk, tools: tuple[str, ...] = ()) -> object:
    """Return a request that names connections."""
    declared = tuple(DeclaredTool(name) for name in tools)
    return replace(PLAIN_REQUEST, connections=asks, tools=declared)


async def test_tools_of_two_servers_with_one_name_stay_apart() -> None:
    """The server is part of the function's name."""
    offer = await make_offer(
        asking(ConnectionAsk("git"), ConnectionAsk("web")), ToolRule(), CONNECTIONS
    )
    assert dict(offer.places) == {
        "mcp__git__push": Place("git", "push"),
        "mcp__git__read": Place("git", "read"),
        "mcp__web__read": Place("web", "read"),
    }
    assert offer.reads == {"mcp__git__read", "mcp__web__read"}


async def test_a_connection_that_is_named_twice_gives_what_both_want() -> None:
    """As `mcp_servers` and the toolset of one request do."""
    asks = (ConnectionAsk("git"), ConnectionAsk("git", ("read", "push")))
    offer = await make_offer(
        asking(*asks, ConnectionAsk("git", ("read",))), ToolRule(), CONNECTIONS
    )
    assert list(offer.places) == ["mcp__git__read"]


async def test_what_the_rule_refuses_is_not_offered() -> None:
    """In enforce; in dry run it is, and noted."""
    enforced = ToolRule("enforce", ("mcp:git/read",))
    offer = await make_offer(asking(ConnectionAsk("git")), enforced, CONNECTIONS)
    assert list(offer.places) == ["mcp__git__read"]
    noted = await make_offer(
        asking(ConnectionAsk("git")), replace(enforced, mode="dry_run"), CONNECTIONS
    )
    assert noted.outside == ("mcp:git/push",)
    assert len(noted.places) == 2


async def test_a_read_only_run_is_offered_the_policys_read_only_tools() -> None:
    """Whatever the mode of the list."""
    request = asking(ConnectionAsk("git"))
    request = replace(request, ask=replace(request.ask, read_only=True))
    rule = ToolRule("any", read_only=("mcp:git/read",))
    offer = await make_offer(request, rule, CONNECTIONS)
    assert list(offer.places) == ["mcp__git__read"]


async def test_a_server_that_is_away_or_unknown_is_a_clean_refusal() -> None:
    """502 and 400."""
    with pytest.raises(GatewayError) as away:
        await make_offer(asking(ConnectionAsk("gone")), ToolRule(), CONNECTIONS)
    with pytest.raises(GatewayError) as unknown:
        await make_offer(asking(ConnectionAsk("none")), ToolRule(), CONNECTIONS)
    assert [(e.value.status, e.value.code) for e in (away, unknown)] == [
        (502, "connection_failed"),
        (400, "unknown_connection"),
    ]


async def test_more_tools_than_a_model_takes_are_refused() -> None:
    """With the way out."""
    many = FakeConnections({"big": {f"t{n}": nothing for n in range(129)}})
    with pytest.raises(GatewayError, match="129 tools") as failure:
        await make_offer(asking(ConnectionAsk("big")), ToolRule(), many)
    assert "allowed_tools" in failure.value.mend


@given(
    st.lists(
        st.tuples(
            st.text("ab_-", min_size=1, max_size=64),
            st.text("ab_.-", min_size=1, max_size=128),
        ),
        unique=True,
        max_size=20,
    )
)
def test_names_are_fit_and_never_the_same(places: list[tuple[str, str]]) -> None:
    """However long or alike the names of servers and tools are."""
    taken: set[str] = set()
    for connection, tool in places:
        name = function_name(Place(connection, tool), taken)
        assert name not in taken
        assert 0 < len(name) <= 64
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-")
        taken.add(name)


async def test_a_tool_that_a_connection_lacks_is_named() -> None:
    """Nobody believes that a model was offered what it was not."""
    with pytest.raises(GatewayError, match="no tool `merge`") as refused:
        await make_offer(asking(ConnectionAsk("git", ("read", "merge"))), ToolRule(), CONNECTIONS)
    assert (refused.value.status, refused.value.code) == (400, "unknown_tool")
