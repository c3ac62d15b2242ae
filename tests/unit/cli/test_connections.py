"""`turnout connections`, on servers that answer and servers that do not."""

import json
import sys
from pathlib import Path

import pytest

from turnout.cli.main import run

GOOD = f"""
[connections.notes]
command = ["{sys.executable}", "-m", "turnout.testing.connections.server"]
allow = ["read_note", "odd"]
"""
BAD = """
[connections.away]
url = "http://127.0.0.1:9/mcp"
token_env = "AWAY_TOKEN"
timeout = 5.0
"""


@pytest.fixture
def file(tmp_path, monkeypatch) -> Path:
    """Name a configuration; the state folder is an empty one."""
    monkeypatch.setenv("TURNOUT_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("AWAY_TOKEN", "s3cret-token")
    return tmp_path / "turnout.toml"


def call(file: Path, *arguments: str) -> int:
    """Run the command."""
    return run(["connections", *arguments, "--config", str(file)])


def test_a_list_names_each_connection_and_no_credential(file, capsys):
    """Nobody is asked; a variable that is missing is named."""
    file.write_text(GOOD + BAD.replace("AWAY_TOKEN", "GONE_TOKEN"))
    assert call(file, "list") == 0
    notes, away = capsys.readouterr().out.splitlines()
    assert notes.startswith("notes  ")
    assert "only read_note, odd" in notes
    assert away == "away  http://127.0.0.1:9/mcp  (GONE_TOKEN is not set)"
    assert call(file, "list", "--json") == 0
    listed = json.loads(capsys.readouterr().out)["connections"]
    assert [held["name"] for held in listed] == ["notes", "away"]


def test_a_check_shows_the_tools_as_policies_name_them(file, capsys):
    """With the mark of those that only read."""
    file.write_text(GOOD)
    assert call(file, "check") == 0
    assert capsys.readouterr().out.splitlines() == [
        "notes  2 tools",
        "  mcp:notes/odd  Return text that is not what it seems.",
        "  mcp:notes/read_note (reads only)  Read a note.",
    ]


def test_a_check_ends_with_4_where_a_server_does_not_answer(file, capsys):
    """Those that do are shown all the same; no credential is."""
    file.write_text(GOOD + BAD)
    assert call(file, "check") == 4
    printed = capsys.readouterr()
    assert "notes  2 tools" in printed.out
    assert "away  failed: The connection away: cannot be reached." in printed.out
    assert "s3cret" not in printed.out + printed.err
    assert call(file, "check", "away", "--json") == 4
    (one,) = json.loads(capsys.readouterr().out)["connections"]
    assert (one["name"], one["ok"], one["tools"]) == ("away", False, [])


def test_a_name_that_is_not_configured_is_wrong_usage(file, capsys):
    """With the one that comes near."""
    file.write_text(GOOD)
    assert call(file, "check", "note") == 2
    assert "notes" in capsys.readouterr().err


def test_without_connections_it_says_how_to_write_one(file, capsys):
    """And that is no failure."""
    file.write_text("")
    assert call(file, "check") == 0
    assert "[connections.NAME]" in capsys.readouterr().out
