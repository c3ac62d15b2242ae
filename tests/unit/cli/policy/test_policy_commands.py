"""`turnout policy` against a store of its own."""

import json
from pathlib import Path

import pytest

from turnout.cli.main import run

CONFIG = """
[providers.p]
base_url = "http://127.0.0.1:1/v1"
[[deployments]]
model = "big"
provider = "p"
tools = "confirmed"
price = { input_usd = "1", output_usd = "2" }
[[deployments]]
model = "small"
provider = "p"
price = { input_usd = "0.1", output_usd = "0.2" }
[policy]
objective = "cost"
[policy.tools]
mode = "enforce"
allow = ["read_file"]
"""
TEAM = """
[policies.team]
pool = ["big"]
[policies.team.aliases]
"gpt-*" = "auto"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with a configuration, on a state folder beside it."""
    monkeypatch.setenv("TURNOUT_HOME", str(tmp_path / "home"))
    for variable in ("TURNOUT_CONFIG", "LLM_BASE_URL", "LLM_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "turnout.toml").write_text(CONFIG)
    (tmp_path / "team.toml").write_text(TEAM)
    return tmp_path


@pytest.fixture
def turnout(capsys: pytest.CaptureFixture[str]):
    """Return what runs a command and gives its exit code and what it printed."""

    def call(*argv: str) -> tuple[int, str]:
        code = run(["policy", *argv])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return call


def test_a_file_is_applied_once_and_shown_as_it_was(turnout, folder: Path) -> None:
    """What is shown can be applied again, and changes nothing."""
    code, said = turnout("apply", "team.toml", "--note", "first", "--author", "ann")
    assert (code, "team: revision 1" in said, "by ann: first" in said) == (0, True, True)
    assert "+ big" in said
    shown = turnout("show", "team")[1]
    (folder / "again.toml").write_text(shown)
    assert turnout("apply", "again.toml") == (0, "team: unchanged, revision 1\n")


def test_a_draft_is_compared_with_the_file_that_counts_until_then(turnout, folder: Path) -> None:
    """What was never applied is not nothing: gateways that run go by it."""
    (folder / "policies.toml").write_text('[policies.default]\nobjective = "quality"\n')
    code, said = turnout("check", "policies.toml")
    assert (code, "default: the configuration file → the draft" in said) == (0, True)
    assert "cost → quality" in said
    assert "enforce → any" in said
    checked = json.loads(turnout("check", "policies.toml", "--json")[1])
    assert checked["policies"][0]["diff"]["before"] == 0
    assert "cost → quality" in turnout("apply", "policies.toml")[1]
    assert turnout("check", "nothing.toml") == (
        2,
        "Error: nothing.toml cannot be read: No such file or directory.\n",
    )


def test_a_change_is_compared_and_rolled_back(turnout, folder: Path) -> None:
    """Field by field, in words and as JSON."""
    turnout("apply", "team.toml")
    (folder / "team.toml").write_text(TEAM.replace('pool = ["big"]', 'pool = ["small"]'))
    assert "- big" in turnout("diff", "team", "--file", "team.toml")[1]
    turnout("apply", "team.toml")
    code, said = turnout("diff", "team", "--json")
    assert code == 0
    (change,) = json.loads(said)["changes"]
    assert (change["field"], change["added"], change["removed"]) == (
        "pool.models",
        ["small"],
        ["big"],
    )
    code, said = turnout("rollback", "team", "1", "--note", "too slow")
    assert "revision 3" in said
    assert "back to revision 1; too slow" in said
    history = json.loads(turnout("history", "team", "--json")[1])["revisions"]
    assert [(one["revision"], one["restores"]) for one in history] == [(3, 1), (2, None), (1, None)]
    assert history[0]["policy"] == history[2]["policy"]


def test_every_policy_is_listed_at_its_newest(turnout) -> None:
    """Those of the file that were never applied are listed as such."""
    turnout("apply", "team.toml")
    said = turnout("history")[1]
    assert "team: revision 1" in said
    assert "default: of the configuration file, never applied" in said
    assert 'objective = "cost"' in turnout("show")[1]
    assert turnout("history", "default")[0] == 1
    assert turnout("show", "gone")[0] == 1


def test_a_check_says_what_stands_out_and_applies_nothing(turnout, folder: Path) -> None:
    """A wrong file is exit code 2, with the key."""
    code, said = turnout("check", "team.toml")
    assert (code, "team: sound" in said, "→ the draft" in said) == (0, True, True)
    assert "never applied" in turnout("history")[1]
    (folder / "team.toml").write_text('[policies.team]\npool = ["bigg"]')
    code, said = turnout("check", "team.toml")
    assert (code, "team.pool" in said, "Did you mean `big`?" in said) == (2, True, True)
    assert turnout("apply", "team.toml")[0] == 2
    for text in ("[polices.x]", "[agent]", "x = ", "x = " + "[" * 9_000):
        (folder / "team.toml").write_text(text)
        assert turnout("check", "team.toml")[0] == 2
    assert turnout("check", "missing.toml")[0] == 2


def test_whoever_expects_another_revision_is_refused(turnout) -> None:
    """Exit code 1, and the error as JSON where that is wanted."""
    assert turnout("apply", "team.toml", "--expect", "0")[0] == 0
    code, said = turnout("rollback", "team", "1", "--expect", "4", "--json")
    assert (code, json.loads(said)["error"]["kind"]) == (1, "conflict")


def test_a_decision_is_explained_without_any_model(turnout) -> None:
    """Nobody listens at the provider's address; unknown tool support stays unknown."""
    code, said = turnout("explain", "--tool", "read_file")
    assert code == 0
    assert "p/big" in said.splitlines()[0]
    assert "tool support unknown" in said
    code, said = turnout("explain", "--json")
    assert (code, json.loads(said)["order"]) == (0, ["p/small", "p/big"])


def test_what_the_policy_refuses_is_refused(turnout) -> None:
    """Exit code 3 with the tool's name; under a draft that allows it, it passes."""
    code, said = turnout("explain", "--tool", "shell")
    assert (code, "`shell` is not allowed" in said) == (3, True)
    code, said = turnout("explain", "--tool", "shell", "--draft", "team.toml")
    assert (code, said.startswith("p/big")) == (0, True)


def test_a_request_is_explained_as_it_would_be_sent(turnout, folder: Path) -> None:
    """Of whatever shape; with an alias of the policy for its model."""
    turnout("apply", "team.toml")
    body = {"model": "gpt-5", "input": "Hi", "routing": {"policy": "team", "optimize": "cost"}}
    (folder / "body.json").write_text(json.dumps(body))
    code, said = turnout("explain", "--request", "body.json")
    assert (code, "policy team, revision 1" in said, "outside the pool" in said) == (0, True, True)
    (folder / "body.json").write_text("{")
    assert turnout("explain", "--request", "body.json")[0] == 2
    assert turnout("explain", "--model", "nobodys")[0] == 2


def test_where_nothing_may_serve_each_reason_is_listed(turnout, folder: Path) -> None:
    """Exit code 1."""
    (folder / "team.toml").write_text("[policies.team]\npool = { min_context = 9000 }")
    code, said = turnout("explain", "--draft", "team.toml")
    assert code == 1
    assert "No deployment is eligible" in said


def test_a_report_says_what_to_do(turnout) -> None:
    """Of the policy of the file, too."""
    code, said = turnout("report")
    assert (code, "The list is enforced" in said) == (0, True)
    assert json.loads(turnout("report", "--json")[1])["hits"] == []
    assert turnout("report", "gone")[0] == 1
