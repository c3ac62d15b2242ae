"""`turnout keys`, on a state folder of its own."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from turnout.cli.keys import command
from turnout.errors import ConflictError, NotFoundError, UsageError
from turnout.gateway.keys.ring import digest_of


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return the state folder."""
    return tmp_path / "state"


def keys(home: Path, *words: str, **environment: str) -> Result:
    """Run a command; what it raises on purpose comes out."""
    done = CliRunner().invoke(
        command, words, env={"TURNOUT_HOME": str(home), **environment}, standalone_mode=False
    )
    if isinstance(done.exception, Exception):
        raise done.exception
    assert done.return_value == 0, done.output
    return done


def listed(home: Path) -> list[dict[str, Any]]:
    """Return every key as JSON."""
    found: list[dict[str, Any]] = json.loads(keys(home, "list", "--all", "--json").stdout)["keys"]
    return found


def test_a_new_key_stands_alone_on_standard_output(home: Path) -> None:
    """So that a shell can put it into a variable; only its hash is in the state folder."""
    made = keys(home, "create", "ci", "--spend-per-day", "20", "--requests-per-minute", "60")
    key = made.stdout.strip()
    assert key.startswith("tk-")
    assert "$20.00/day" in made.stderr
    assert key not in made.stderr
    assert key not in keys(home, "list", "--all", "--json").output
    files = b"".join(path.read_bytes() for path in home.iterdir() if path.is_file())
    assert key.encode() not in files
    assert digest_of(key).encode() in files


def test_a_configuration_file_is_read_where_the_command_is_started(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its policies are those that a key may be given."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "turnout.toml").write_text('[policies.agents]\nobjective = "cost"\n')
    keys(home, "create", "ci", "--policy", "agents")
    assert listed(home)[0]["policies"] == ["agents"]


def test_a_cap_that_keeps_a_key_from_every_model_is_warned_of(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows what the one model costs, unless the policy does not mind."""
    monkeypatch.chdir(tmp_path)
    file = (
        "[policies.easy]\nallow_unpriced = true\n[policies.strict]\n"
        '[providers.own]\nbase_url = "http://10.0.0.5:8000/v1"\n'
        '[[deployments]]\nmodel = "own-model"\nprovider = "own"\n'
    )
    (tmp_path / "turnout.toml").write_text(file)
    made = keys(home, "create", "a", "--policy", "strict", "--spend-per-day", "20")
    assert "warning: The key has a cap on spend" in made.stderr
    assert "own/own-model is unknown" in made.stderr
    assert "`price`" in made.stderr
    for name, more in (("b", ("--spend-per-day", "20", "--policy", "easy")), ("c", ())):
        made = keys(home, "create", name, *more, *(() if more else ("--policy", "strict")))
        assert "warning" not in made.stderr


def test_a_cap_is_warned_of_where_the_model_comes_from_the_environment_alone(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is asked: the address leads nowhere. Of a listed model the price is known."""
    monkeypatch.chdir(tmp_path)
    own = {"LLM_BASE_URL": "http://127.0.0.1:1/v1", "LLM_MODEL": "own-model"}
    made = keys(home, "create", "a", "--spend-per-day", "20", **own)
    assert "warning: The key has a cap on spend" in made.stderr
    assert "own-model is unknown: no model may serve" in made.stderr
    assert "warning: The key" in keys(home, "update", "a", "--spend-per-day", "5", **own).stderr
    listed_model = {"LLM_BASE_URL": "https://api.openai.com/v1", "LLM_MODEL": "gpt-4o"}
    for name, cap, environment in (
        ("b", (), own),
        ("c", ("--spend-per-day", "20"), listed_model),
        ("d", ("--spend-per-day", "20"), {"LLM_BASE_URL": "http://127.0.0.1:1/v1"}),
    ):
        assert "warning" not in keys(home, "create", name, *cap, **environment).stderr


def test_what_is_not_said_is_not_limited(home: Path) -> None:
    """The key has the default policy, and no rights to govern."""
    (key,) = [json.loads(keys(home, "create", "ci", "--json").stdout)]
    assert key.pop("key")
    assert [key] == listed(home)
    limits = ("requests_per_minute", "concurrency", "spend_per_day_micros", "expires_at")
    assert [key[name] for name in limits] == [None] * 4
    assert (key["policies"], key["project"], key["admin"]) == (["default"], "default", False)


def test_an_update_changes_what_it_names(home: Path) -> None:
    """And nothing else; `none` takes a limit away."""
    keys(home, "create", "ci", "--concurrency", "4", "--requests-per-minute", "60", "--admin")
    keys(home, "update", "ci", "--concurrency", "none", "--project", "web", "--no-admin")
    (key,) = listed(home)
    assert (key["concurrency"], key["requests_per_minute"]) == (None, 60)
    assert (key["project"], key["admin"], key["policies"]) == ("web", False, ["default"])
    keys(home, "update", "ci", "--expires", "2030-01-31")
    assert listed(home)[0]["expires_at"] == "2030-01-31T00:00:00+00:00"
    keys(home, "update", "ci", "--expires", "never")
    assert listed(home)[0]["expires_at"] is None


def test_a_revoked_key_is_out_of_sight_and_stays_known(home: Path) -> None:
    """Its name is not given again."""
    keys(home, "create", "ci")
    assert "is revoked" in keys(home, "revoke", "ci").output
    assert "There are no keys" in keys(home, "list").output
    assert [key["state"] for key in listed(home)] == ["revoked"]
    with pytest.raises(ConflictError):
        keys(home, "create", "ci")


def test_the_list_says_who_may_what(home: Path) -> None:
    """One line a key, with its limits and its end."""
    keys(
        home,
        "create",
        "ci",
        "--concurrency",
        "2",
        "--spend-per-day",
        "0.5",
        "--expires",
        "2030-01-31",
    )
    keys(home, "create", "root", "--admin")
    head, *lines = keys(home, "list").output.splitlines()
    assert head.split() == ["NAME", "KEY", "PROJECT", "ROLE", "POLICIES", "LIMITS", "STATE"]
    assert "2 at once, $0.50/day" in lines[0]
    assert lines[0].endswith("until 2030-01-31 00:00")
    assert lines[1].startswith("root (admin)")
    assert lines[1].endswith("active")


@pytest.mark.parametrize(("span", "length"), [("30d", timedelta(30)), ("12h", timedelta(hours=12))])
def test_a_key_may_last_for_a_time(home: Path, span: str, length: timedelta) -> None:
    """Counted from now."""
    keys(home, "create", "ci", "--expires", span)
    expires = datetime.fromisoformat(listed(home)[0]["expires_at"])
    assert abs(expires - datetime.now(UTC) - length) < timedelta(minutes=5)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--concurrency", "0"),
        ("--concurrency", "-1"),
        ("--requests-per-minute", "1.5"),
        ("--requests-per-minute", "9" * 30),
        ("--spend-per-day", "0"),
        ("--spend-per-day", "0.0000001"),
        ("--spend-per-day", "NaN"),
        ("--spend-per-day", "1e99"),
        ("--spend-per-day", "ten"),
        ("--expires", "30"),
        ("--expires", "soon"),
        ("--expires", "0d"),
    ],
)
def test_what_makes_no_sense_is_refused(home: Path, option: str, value: str) -> None:
    """With what would; no key is made."""
    done = CliRunner().invoke(
        command, ["create", "ci", option, value], env={"TURNOUT_HOME": str(home)}
    )
    assert done.exit_code == 2, done.output
    assert "give " in done.output
    assert listed(home) == []


def test_a_policy_has_to_be_there(home: Path, tmp_path: Path) -> None:
    """Those of the configuration and of the store are known."""
    config = tmp_path / "turnout.toml"
    config.write_text("[policies.agents]\nobjective = 'cost'\n")
    keys(home, "create", "ci", "--config", str(config), "--policy", "agents", "--policy", "default")
    assert listed(home)[0]["policies"] == ["agents", "default"]
    with pytest.raises(UsageError, match="no policy 'nope'"):
        keys(home, "create", "other", "--config", str(config), "--policy", "nope")


def test_who_is_not_there_cannot_be_changed(home: Path) -> None:
    """Nor revoked."""
    for words in (["update", "x", "--admin"], ["revoke", "x"]):
        with pytest.raises(NotFoundError, match="no key 'x'"):
            keys(home, *words)
