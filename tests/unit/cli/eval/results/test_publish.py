"""Results put where the console shows them."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.unit.evals.trials.parts import trial_of, unit_of

from turnout.cli.eval.results.publish import publish
from turnout.errors import ConflictError, UsageError
from turnout.evals.trials.store import Results


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Return a results file beside a configuration that is trusted, and a state folder."""
    path = tmp_path / "bugs.results.jsonl"
    kept = Results(path)
    with kept.writing():
        kept.add(trial_of(unit_of()))
    return path


def published(results: Path, *words: str) -> Path:
    """Publish results, and return where they are."""
    home = results.parent / "home"
    asked = [str(results), *words]
    done = CliRunner(env={"TURNOUT_HOME": str(home)}).invoke(publish, asked, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    assert done.return_value == 0
    return Path(done.stdout.strip())


def test_the_console_finds_a_copy_under_the_name_of_the_file(results: Path) -> None:
    """The same again is the same; they stay where they are."""
    place = published(results)
    assert place == results.parent / "home" / "evaluations" / "bugs.results.jsonl"
    assert place.read_bytes() == results.read_bytes()
    assert published(results) == place
    assert [path.name for path in place.parent.iterdir()] == [place.name]


def test_other_results_of_that_name_stay_unless_they_are_to_be_replaced(results: Path) -> None:
    """A second name is as good."""
    place = published(results, "--name", "march")
    place.write_text("other\n")
    with pytest.raises(ConflictError, match=r"march\.jsonl") as taken:
        published(results, "--name", "march")
    assert "--replace" in taken.value.mend
    assert place.read_text() == "other\n"
    assert published(results, "--name", "march.jsonl", "--replace") == place
    assert place.read_bytes() == results.read_bytes()


@pytest.mark.parametrize("name", ["../a", "", ".hidden", "a/b", "x" * 250])
def test_a_name_leads_nowhere_else(results: Path, name: str) -> None:
    """Nor to where nobody would find it."""
    with pytest.raises(UsageError, match="no name for results"):
        published(results, "--name", name or " ")
    assert not (results.parent / "home" / "evaluations").exists()


def test_what_holds_no_result_is_not_published(tmp_path: Path) -> None:
    """The console would have nothing to show."""
    path = tmp_path / "r.jsonl"
    with Results(path).writing():
        pass
    with pytest.raises(UsageError, match="holds no result yet"):
        published(path)
