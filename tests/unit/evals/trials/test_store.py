"""Results that outlive the command."""

import json

import pytest
from tests.unit.evals.trials.parts import INSTANCE, MODEL, trial_of, unit_of

from turnout.errors import ConfigError, ConflictError
from turnout.evals.trials.model import KindUsage
from turnout.evals.trials.store import Results, read_trials

UNIT = unit_of()
TRIAL = trial_of(UNIT, usage=(KindUsage("act", "m", 1, 10, 2),), tests_touched=("t.py",))


def written(path, *trials):
    """Return a file that holds these."""
    results = Results(path)
    with results.writing():
        for trial in trials:
            results.add(trial)
    return results


def test_a_result_is_there_when_the_file_is_opened_again(tmp_path):
    """Every field of it, and which evaluation it is of."""
    path = tmp_path / "deep" / "results.jsonl"
    first = written(path, TRIAL)
    again = Results(path)
    assert again.newest(UNIT) == TRIAL
    assert again.evaluation == first.evaluation != ""
    assert read_trials(path) == (TRIAL,)


def test_each_instance_row_arm_mode_strictness_and_try_is_a_unit_of_its_own(tmp_path):
    """What any of them has been changed in is not done."""
    results = written(tmp_path / "results.jsonl", TRIAL)
    assert results.done(UNIT)
    for other in (
        unit_of(arm=MODEL),
        unit_of(attempt=2),
        trial_of(UNIT, mode="visible").unit,
        trial_of(UNIT, strict=True).unit,
        trial_of(UNIT, instance_digest="other").unit,
        trial_of(UNIT, arm_digest="other").unit,
    ):
        assert not results.done(other)
        assert other.key != UNIT.key


def test_what_could_not_be_graded_is_not_done(tmp_path):
    """The newest result counts, and every earlier one is still there."""
    results = Results(tmp_path / "results.jsonl")
    with results.writing():
        results.add(trial_of(UNIT, grade="infrastructure", outcome="failed"))
        assert not results.done(UNIT)
        assert results.failures(UNIT) == 1
        results.add(trial_of(UNIT, grade="infrastructure"))
        assert results.failures(UNIT) == 1
        results.add(TRIAL)
    assert results.of([INSTANCE]) == (TRIAL,)
    assert len(results.rows) == 3


def test_half_a_line_is_no_result(tmp_path):
    """A crash while writing loses that trial and no other; a reader leaves the line alone."""
    path = tmp_path / "results.jsonl"
    written(path, TRIAL)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[-40:-1])
    assert read_trials(path) == (TRIAL,)
    assert len(path.read_bytes()) > len(whole)
    written(path, trial_of(unit_of(attempt=2)))
    assert path.read_bytes().startswith(whole)
    assert len(read_trials(path)) == 2


def test_a_row_from_before_there_were_arms_is_read(tmp_path):
    """As one of `auto`, with what it had left out."""
    path = tmp_path / "results.jsonl"
    row = {"instance_id": "one", "instance_digest": "d", "grade": "resolved", "dropped": ["t.py"]}
    path.write_text(f"{json.dumps({**row, 'models': ['m'], 'model_calls': 3})}\n")
    (trial,) = read_trials(path)
    assert (trial.arm, trial.mode, trial.schema) == ("auto", "hidden", 0)
    assert trial.tests_touched == ("t.py",)


def test_two_evaluations_do_not_write_to_one_file(tmp_path):
    """The second is told so before it runs anything."""
    path = tmp_path / "results.jsonl"
    with Results(path).writing(), pytest.raises(ConflictError, match="Another evaluation"):
        written(path, TRIAL)


@pytest.mark.parametrize("line", ['{"a": 1}', "[]", "x", '{"evaluation": 1}'])
def test_a_file_of_another_kind_is_refused(tmp_path, line):
    """With its line, before anything is run."""
    path = tmp_path / "results.jsonl"
    path.write_text(f"{line}\n")
    with pytest.raises(ConfigError, match="line 1 is no result"):
        Results(path)
    with pytest.raises(ConfigError, match="is not there"):
        read_trials(tmp_path / "none.jsonl")
