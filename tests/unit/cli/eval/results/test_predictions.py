"""`turnout eval export`: patches of a results file."""

import json
from pathlib import Path

import pytest

from turnout.cli.eval.results.export import export
from turnout.cli.main import run
from turnout.evals.trials.model import Trial
from turnout.evals.trials.store import Results


def results(folder: Path, *trials: Trial) -> Path:
    """Write a file of results."""
    path = folder / "tasks.results.jsonl"
    kept = Results(path)
    with kept.writing():
        for trial in trials:
            kept.add(trial)
    return path


def trial(name: str, arm: str = "auto", attempt: int = 1) -> Trial:
    """Return a trial whose patch says which it is."""
    return Trial(name, "d", "resolved", arm=arm, attempt=attempt, diff=f"{name} {arm} {attempt}\n")


def test_the_first_try_of_each_instance_is_its_prediction(tmp_path: Path) -> None:
    """Whatever order they ended in; the file is replaced as a whole."""
    path = results(tmp_path, trial("b", attempt=2), trial("b"), trial("a"))
    out = tmp_path / "preds.json"
    out.write_text("old")
    assert not run([str(path), "-o", str(out)], export)
    found = json.loads(out.read_text())
    assert {name: each["model_patch"] for name, each in found.items()} == {
        "a": "a auto 1\n",
        "b": "b auto 1\n",
    }
    assert sorted(each.name for each in tmp_path.iterdir()) == ["preds.json", path.name]


def test_several_arms_need_a_choice_or_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One object cannot hold two patches of one instance."""
    path = results(tmp_path, trial("a"), trial("a", "model:m"))
    out = tmp_path / "preds.json"
    assert run([str(path), "-o", str(out)], export) == 2
    assert "auto, model:m" in capsys.readouterr().err
    assert not out.exists()
    assert not run([str(path), "-o", str(out), "--arm", "model:m"], export)
    assert json.loads(out.read_text())["a"]["model_name_or_path"] == "model:m"
    lines = tmp_path / "preds.jsonl"
    assert not run([str(path), "-o", str(lines)], export)
    assert len(lines.read_text().splitlines()) == 2


def test_an_arm_that_is_not_there_is_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those that are there are named."""
    path = results(tmp_path, trial("a"))
    assert run([str(path), "--arm", "other"], export) == 2
    assert "Arms: auto." in capsys.readouterr().err
