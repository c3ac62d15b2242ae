"""`turnout audit`, after keys were made on the command line."""

import json
from pathlib import Path

from click.testing import CliRunner

from turnout.cli.main import command


def call(home: Path, *arguments: str) -> str:
    """Run a command and return what it printed."""
    env = {"TURNOUT_HOME": str(home)}
    done = CliRunner().invoke(command, arguments, env=env, standalone_mode=False)
    assert done.return_value == 0, done.output or done.exception
    return done.stdout


def test_who_made_a_key_and_who_shut_it_is_on_record(tmp_path: Path) -> None:
    """Newest first, by the name of whoever ran the command; never the key itself."""
    assert call(tmp_path, "audit") == "Nobody has changed anything.\n"
    assert call(tmp_path, "audit", "--action", "foo") == "Nobody has changed anything.\n"
    key = call(tmp_path, "keys", "create", "ci", "--project", "web", "--role", "member").strip()
    call(tmp_path, "keys", "revoke", "ci")
    said = call(tmp_path, "audit")
    newest, oldest = said.splitlines()
    assert ("revoke_key" in newest, "create_key" in oldest) == (True, True)
    assert "project=web role=member" in oldest
    assert key not in said
    none = call(tmp_path, "audit", "--action", "foo")
    assert none == "No change is called 'foo'. On record are: create_key, revoke_key.\n"
    none = call(tmp_path, "audit", "--action", "create_key", "--actor", "nobody")
    assert none == "No change matches.\n"
    (change,) = json.loads(call(tmp_path, "audit", "--action", "create_key", "--json"))["changes"]
    assert change["subject"] == "ci"
    assert "@" in change["actor"]
