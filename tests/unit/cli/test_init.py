"""The file that `turnout init` writes is right, whatever was found."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from turnout.cli.init import Found, render
from turnout.settings import Settings, load_settings

KEYED = Found("deepseek", "https://api.example/v1", ("big", "small"), "DEEPSEEK_API_KEY", why="set")
LOCAL = Found("ollama", "http://127.0.0.1:11434/v1", ("qwen3:8b",), free=True, why="answers")
UNCHOSEN = Found("env", "https://api.example/v1", (), "LLM_API_KEY", why="LLM_BASE_URL is set")


def parsed(folder: Path, *found: Found) -> Settings:
    """Return the settings that the written file amounts to."""
    (folder / "turnout.toml").write_text(render(found))
    environment = {"DEEPSEEK_API_KEY": "k", "LLM_API_KEY": "k"}
    return load_settings(environment=environment, directory=folder)


@pytest.mark.parametrize("found", [(), (KEYED,), (LOCAL,), (UNCHOSEN,), (KEYED, LOCAL, UNCHOSEN)])
def test_the_file_parses(tmp_path: Path, found: tuple[Found, ...]) -> None:
    """No combination of findings makes a broken file."""
    assert parsed(tmp_path, *found).config_file is not None


def test_the_pool_holds_the_models_that_were_found(tmp_path: Path) -> None:
    """Nothing else may serve."""
    settings = parsed(tmp_path, KEYED, LOCAL)
    assert settings.policy.pool.models == ("big", "small", "qwen3:8b")
    assert [d.id for d in settings.catalog.deployments][-1] == "ollama/qwen3:8b"
    assert settings.catalog.deployments[-1].price is not None


def test_the_routing_of_a_start(tmp_path: Path) -> None:
    """Balanced, the plan on quality, the surface's tools in a dry run, sessions capped."""
    settings = parsed(tmp_path, KEYED)
    policy = settings.policy
    assert policy.objective == "balanced"
    assert settings.agent.steps["plan"].objective == "quality"
    assert policy.tools.mode == "dry_run"
    assert policy.tools.allow == ("list_files", "read_file", "run_tests", "apply_patch")
    assert (policy.session.max_requests, policy.session.max_spend) == (200, 2_000_000)


def test_a_cap_does_not_shut_out_what_has_no_price(tmp_path: Path) -> None:
    """The one model of an endpoint is admitted; the file says that the cap misses it."""
    chosen = replace(UNCHOSEN, models=("foo",))
    assert parsed(tmp_path, chosen).policy.allow_unpriced
    assert "The price of foo is unknown" in render((chosen,))


def test_known_prices_stay_under_the_cap(tmp_path: Path) -> None:
    """Nothing is let past it without need."""
    known = Found("openai", "https://api.openai.com/v1", ("gpt-4o",))
    assert not parsed(tmp_path, known, LOCAL).policy.allow_unpriced


def test_keys_are_named_and_never_written(tmp_path: Path) -> None:
    """The file can be committed."""
    text = render((KEYED,))
    assert 'api_key_env = "DEEPSEEK_API_KEY"' in text


def test_commented_lines_show_real_settings(tmp_path: Path) -> None:
    """Taking the comment away from an example gives a file that still parses."""
    example = re.compile(r"^# (\[.*\]|\w+ = .*)$", re.MULTILINE)
    (tmp_path / "turnout.toml").write_text(example.sub(r"\1", render(())))
    settings = load_settings(environment={"MY_API_KEY": "k"}, directory=tmp_path)
    assert settings.limits.pids == 512
    assert settings.catalog.deployments[0].id == "mine/model-id"
    assert settings.policy.evidence.min_tool_success == 0.9
