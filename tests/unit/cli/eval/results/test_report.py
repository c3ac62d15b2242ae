"""`turnout eval report` and `turnout eval compare`."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.trials import arm_of_trials, trial

from turnout.cli.main import run
from turnout.evals.grading.health import Health, add_health
from turnout.evals.trials.model import Trial
from turnout.evals.trials.store import Results


def results(path: Path, trials: Sequence[Trial]) -> str:
    """Write trials where an evaluation keeps them; return the path."""
    kept = Results(path)
    with kept.writing():
        for each in trials:
            kept.add(each)
    return str(path)


@pytest.fixture
def two_arms(tmp_path: Path) -> str:
    """Write the results of two arms on four tasks."""
    return results(
        tmp_path / "tasks.results.jsonl",
        [
            *arm_of_trials("model:big", ["resolved"] * 4, cost=9_000),
            *arm_of_trials("auto", ["resolved"] * 3 + ["no_patch"]),
        ],
    )


def test_a_report_is_printed_and_written(
    two_arms: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the screen, as a page and as Markdown; one command."""
    files = [tmp_path / "r.html", tmp_path / "r.md"]
    asked = ["--html", str(files[0]), "--markdown", str(files[1])]
    assert run(["eval", "report", two_arms, *asked]) == 0
    said = capsys.readouterr()
    assert "auto and model:big cannot be told apart" in said.out
    assert f"Written: {files[0]}\nWritten: {files[1]}\n" == said.err
    assert files[0].read_text().startswith("<!doctype html>")
    assert files[1].read_text().startswith("## Evaluation")


def test_a_kept_report_can_be_read_again(
    two_arms: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--json` prints one object, of which the same report follows."""
    assert run(["eval", "report", two_arms, "--json"]) == 0
    kept = capsys.readouterr().out
    assert json.loads(kept)["sections"][0]["arms"][0]["name"] == "auto"
    (tmp_path / "kept.json").write_text(kept)
    assert run(["eval", "report", str(tmp_path / "kept.json"), "--json"]) == 0
    assert capsys.readouterr().out == kept


def test_the_check_of_the_set_beside_the_results_counts(
    two_arms: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A task that is not sound is in no rate, and the report says why."""
    for number in range(4):
        name = f"task-{number:02}"
        sound = Health(name, f"row-{name}", number != 3, "It is flaky.")
        add_health(tmp_path / "tasks.health.jsonl", sound)
    assert run(["eval", "report", two_arms]) == 0
    text = capsys.readouterr().out
    assert "3 of 3" in text
    assert "1 of 4 tasks say nothing of a fix" in text
    assert "task-03   It is flaky." in text


def test_another_arm_can_be_the_one_that_is_compared(
    two_arms: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that is not there is wrong usage, with those that are."""
    assert run(["eval", "report", two_arms, "--arm", "model:big"]) == 0
    assert "model:big against auto" in capsys.readouterr().out
    assert run(["eval", "report", two_arms, "--arm", "none"]) == 2
    assert "There are auto, model:big." in capsys.readouterr().err


def test_what_cannot_be_read_or_written_is_wrong_usage(
    two_arms: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In words, and nothing else."""
    assert run(["eval", "report", str(tmp_path / "none.jsonl")]) == 2
    assert "none.jsonl is not there." in capsys.readouterr().err
    assert run(["eval", "report", two_arms, "--html", str(tmp_path / "no" / "r.html")]) == 2
    assert "cannot be written: No such file or directory." in capsys.readouterr().err
    kept = Path(two_arms).read_bytes()
    assert run(["eval", "report", two_arms, "--markdown", two_arms]) == 2
    assert "is what the report is made of." in capsys.readouterr().err
    assert Path(two_arms).read_bytes() == kept


def test_names_do_not_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither in the tables nor in the sentences."""
    evil = "m\x1b[2J\u202e"
    path = results(tmp_path / "r.jsonl", [trial(evil, arm=evil, smells=(evil,), repo=evil)])
    assert run(["eval", "report", path]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "\u202e" not in said


def test_two_evaluations_are_compared_by_arm(
    two_arms: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What changed since; with nothing in common it is wrong usage."""
    later = results(tmp_path / "later.jsonl", arm_of_trials("auto", ["resolved"] * 4))
    page = tmp_path / "change.html"
    assert run(["eval", "compare", two_arms, later, "--html", str(page)]) == 0
    assert "auto in later.jsonl against auto in tasks.results.jsonl" in capsys.readouterr().out
    assert page.exists()
    other = results(tmp_path / "other.jsonl", [trial("x", arm="z")])
    assert run(["eval", "compare", two_arms, other]) == 2
    assert "no common arm" in capsys.readouterr().err
