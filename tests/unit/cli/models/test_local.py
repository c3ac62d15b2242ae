import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from turnout.cli.models import command
from turnout.cli.models.local import pulled_text
from turnout.errors import ModelUnavailableError, UsageError
from turnout.localmodel.fetch import Fetched
from turnout.localmodel.models import DEFAULT_MODEL


@pytest.fixture
def turnout_models(tmp_path, monkeypatch):
    """Return a function that runs `turnout models` in a state folder of its own."""
    monkeypatch.setenv("TURNOUT_HOME", str(tmp_path))

    def run(*argv):
        result = CliRunner().invoke(command, argv, standalone_mode=False)
        if result.exception:
            raise result.exception
        return result

    return run


def test_the_list_says_which_models_are_here(turnout_models, tmp_path):
    """And how the others are fetched."""
    (tmp_path / "models").mkdir()
    with (tmp_path / "models" / DEFAULT_MODEL.file).open("wb") as file:
        file.truncate(DEFAULT_MODEL.size)
    first, second = turnout_models("list").stdout.splitlines()
    assert first.endswith(f"Apache-2.0  {tmp_path}/models/{DEFAULT_MODEL.file}")
    assert second.endswith("not here: turnout models pull qwen2.5-coder-0.5b")


def test_the_list_as_json_is_one_object(turnout_models):
    """Sizes in bytes, null where a model is not here."""
    found = json.loads(turnout_models("list", "--json").stdout)["models"]
    assert [one["path"] for one in found] == [None, None]
    assert found[0]["default"]
    assert found[0]["size"] == DEFAULT_MODEL.size


def test_an_unknown_name_is_wrong_usage(turnout_models):
    """Before anything is fetched."""
    with pytest.raises(UsageError, match="Did you mean"):
        turnout_models("pull", "qwen2.5-coder-1.5")


def test_a_file_of_another_size_is_refused(turnout_models, tmp_path):
    """`--from PATH` names it."""
    (tmp_path / "small.gguf").write_bytes(b"x")
    with pytest.raises(ModelUnavailableError, match=r"small\.gguf has 1 bytes"):
        turnout_models("pull", "--from", str(tmp_path / "small.gguf"), "--json")


def test_a_file_that_was_not_needed_is_said():
    """A model that is there already is not taken from where the option says."""
    there = Fetched(Path("/m/tiny.gguf"), was_there=True)
    name = DEFAULT_MODEL.name
    assert pulled_text(DEFAULT_MODEL, there, "hub") == f"{name} is already there: /m/tiny.gguf"
    assert pulled_text(DEFAULT_MODEL, there, "/d/x.gguf").endswith("; /d/x.gguf was not read")
    fresh = Fetched(there.path, was_there=False)
    assert pulled_text(DEFAULT_MODEL, fresh, "/d/x.gguf") == f"{name} is in /m/tiny.gguf"


def test_serving_what_is_not_here_names_the_command_that_fetches_it(turnout_models):
    """For the model that was asked for."""
    with pytest.raises(ModelUnavailableError, match=r"turnout models pull qwen2\.5-coder-0\.5b"):
        turnout_models("serve", "qwen2.5-coder-0.5b")


@pytest.mark.parametrize("name", ["pull", "serve", "list"])
def test_every_command_explains_itself(turnout_models, name):
    """With its options."""
    assert "--json" in turnout_models(name, "--help").stdout
