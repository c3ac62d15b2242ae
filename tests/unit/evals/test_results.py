"""Results that outlive the command."""

from dataclasses import replace
from pathlib import Path

import pytest

from turnout.errors import ConfigError
from turnout.evals.instances import Instance
from turnout.evals.results import Results
from turnout.evals.trial import Trial

INSTANCE = Instance("one", "text", "", "HEAD", {}, {"t.py": ""}, "", (), (), None, None, "digest")
TRIAL = Trial(
    instance_id="one",
    instance_digest="digest",
    run_id=None,
    grade="unresolved",
    detail="",
    dropped=("tests/test_a.py",),
    outcome="step_limit",
    reason="",
    verdict=None,
    steps=0,
    model_calls=0,
    models=("m",),
    seconds=1.5,
    cost_micros=None,
    diff="é\\xff",
)


def test_a_result_is_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    """Every field of it."""
    path = tmp_path / "deep" / "results.jsonl"
    Results(path).add(TRIAL)
    assert Results(path).done(INSTANCE) == TRIAL


def test_a_result_of_another_row_is_none_of_this_one(tmp_path: Path) -> None:
    """The instance was changed since."""
    results = Results(tmp_path / "results.jsonl")
    results.add(TRIAL)
    assert results.done(replace(INSTANCE, digest="other")) is None


def test_what_could_not_be_graded_is_done_again(tmp_path: Path) -> None:
    """The newest result counts."""
    results = Results(tmp_path / "results.jsonl")
    results.add(replace(TRIAL, grade="infrastructure"))
    assert results.done(INSTANCE) is None
    assert len(results.of([INSTANCE])) == 1
    results.add(TRIAL)
    assert results.of([INSTANCE]) == (TRIAL,)


def test_half_a_line_is_no_result(tmp_path: Path) -> None:
    """A crash while writing loses that trial and no other."""
    path = tmp_path / "results.jsonl"
    Results(path).add(TRIAL)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:40])
    results = Results(path)
    results.add(TRIAL)
    assert path.read_bytes() == whole * 2


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    """With its line, before anything is run."""
    path = tmp_path / "results.jsonl"
    path.write_text('{"a": 1}\n')
    with pytest.raises(ConfigError, match="line 1 is no result"):
        Results(path)
