"""A check-up of scripted models, on the real loop and in real sandboxes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.unit.evals.checkup.models import Model

from turnout.cli.eval import command as eval_command
from turnout.errors import ConfigError
from turnout.evals.checkup.model import Checkup
from turnout.evals.checkup.run import CheckupLimits, check_up, sessions
from turnout.evals.grading.model import Grade
from turnout.evals.instances.model import Instance
from turnout.sandbox.base import BaseSpec
from turnout.settings import load_settings
from turnout.testing.model_server import ScriptedModelServer, refusing_base_url
from turnout.wiring.evaluation.checkup import open_checkup


class Lenient:
    """Finds every patch right, and takes no time for it."""

    async def grade(
        self, instance: Instance, base: BaseSpec, diff: bytes, *, strict: bool
    ) -> Grade:
        """Return a grade."""
        return Grade("resolved", "")


async def checked(state: Path, model: Model, *, lenient: bool = False) -> Checkup:
    """Check a scripted model up, in a small form."""
    async with ScriptedModelServer(model, models=["m"]) as server:
        environment = {
            "TURNOUT_HOME": str(state),
            "LLM_BASE_URL": server.base_url,
            "LLM_MODEL": "m",
        }
        settings = load_settings(environment=environment, directory=state)
        opening = open_checkup(settings, "m", "files", 600.0, lambda _: None)
        async with opening as tools:
            used = replace(tools, judge=Lenient()) if lenient else tools
            limits = CheckupLimits(10**9, None)
            found = await check_up("m", sessions(links=4, exercises=1), used, limits)
        assert not server.history_faults
        return found


def test_a_model_that_cannot_be_asked_is_told_and_the_others_go_on(
    sandbox_state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it will take is said before; a model that the catalog does not have is an error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TURNOUT_HOME", str(sandbox_state))
    with refusing_base_url() as url:
        (tmp_path / "turnout.toml").write_text(
            f'[providers.own]\nbase_url = "{url}"\n'
            '[[deployments]]\nmodel = "one"\nprovider = "own"\n'
            '[[deployments]]\nmodel = "two"\nprovider = "own"\n'
        )
        done = CliRunner().invoke(eval_command, ["checkup", "--json"], standalone_mode=False)
        assert done.return_value == 1, done.exception
        assert "7 sessions a model, about" in done.stderr
        assert [each["model"] for each in json.loads(done.stdout)["models"]] == ["one", "two"]
        assert all("connected" in each["error"] for each in json.loads(done.stdout)["models"])
        wrong = CliRunner().invoke(
            eval_command, ["checkup", "--model", "onee"], standalone_mode=False
        )
    assert isinstance(wrong.exception, ConfigError)
    assert "`one`" in wrong.exception.mend


async def test_a_model_that_does_everything_right_is_found_to(sandbox_state: Path) -> None:
    """Its calls, its memory, its restraint and its code."""
    found = await checked(sandbox_state, Model())
    (code,) = found.code
    assert (code.grade, code.edits, code.outside) == ("resolved", 1, ())
    assert code.kept_to_it
    assert found.notes is not None
    assert (found.notes.read, found.notes.at_once, found.notes.retained) == (4, 1, True)
    assert found.notes.steps >= 4
    assert (found.calls.made, found.calls.sound, found.calls.tried) == (5, 5, 5)
    assert (found.strategy, found.cut_short, found.metered.calls > 5) == ("loop", "", True)


async def test_a_model_with_every_flaw_is_found_to_have_them(sandbox_state: Path) -> None:
    """Malformed calls, a second look, a file that is none of its business, code that fails."""
    model = Model(looks_again=True, forgets=True, malformed=True, meddles=True, slow=True)
    found = await checked(sandbox_state, model, lenient=True)
    (code,) = found.code
    assert (code.grade, code.edits, code.first_try) == ("resolved", 3, False)
    assert code.outside
    assert not code.kept_to_it
    assert found.notes is not None
    assert found.notes.reached
    assert found.notes.looked_again
    assert not found.notes.retained
    assert found.calls.unusable + found.calls.mended > 0
    assert found.calls.sound < found.calls.tried
