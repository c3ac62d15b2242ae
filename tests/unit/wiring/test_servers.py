"""What opens the MCP servers of a run."""

import sys

import pytest

from turnout.agent.base import AgentConfig
from turnout.core.clock import SystemClock
from turnout.core.govern.connections import Connection
from turnout.errors import MissingExtraError
from turnout.wiring.connections import open_servers


def test_without_servers_nothing_is_opened_and_no_package_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The package is an extra: who has no servers has no use for it."""
    monkeypatch.setitem(sys.modules, "turnout.mcp.connections", None)
    assert open_servers(AgentConfig(), SystemClock()) is None


def test_a_package_that_is_missing_is_named_with_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before a run begins, not in the middle of it."""
    monkeypatch.setitem(sys.modules, "turnout.mcp.connections", None)
    config = AgentConfig(mcp=(Connection("db", command=("db-server",)),))
    with pytest.raises(MissingExtraError, match=r"pip install 'turnout\[mcp\]'.*agent\.mcp"):
        open_servers(config, SystemClock())
