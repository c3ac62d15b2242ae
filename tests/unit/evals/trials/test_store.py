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


@pytest.mark.parametrize(
    ("field", "says"),
    [
        ('"seconds": NaN', "NaN is no number"),
        ('"seconds": 1e999', "out of range"),
        ('"seconds": -1', "out of range"),
        ('"cost_micros": -1', "out of range"),
        ('"steps": 1e30', "steps"),
        ('"attempt": 0', "attempt is below 1"),
        ('"started_at": "2026-01-01T00:00:00"', "names no time zone"),
        ('"schema": -3', "schema is no number of a format"),
        ('"grade": "great"', "grade"),
    ],
)
def test_what_was_never_measured_is_named_with_its_field(tmp_path, field, says):
    """It would be in every figure; and half of the forms of a report could not tell it."""
    path = tmp_path / "results.jsonl"
    row = '{"instance_id": "a", "instance_digest": "d", "grade": "resolved", "schema": 1'
    path.write_text(f"{row}, {field}}}\n")
    with pytest.raises(ConfigError, match="line 1 is no result") as caught:
        Results(path)
    assert says in caught.value.message


def test_blank_lines_are_nothing(tmp_path):
    """As editors and files that were put together have them."""
    path = tmp_path / "results.jsonl"
    first = written(path, TRIAL)
    path.write_bytes(b"\n" + path.read_bytes().replace(b"\n", b"\n\n") + b"  \n")
    other = trial_of(unit_of(attempt=2))
    again = written(path, other)
    assert read_trials(path) == (TRIAL, other)
    assert again.evaluation == first.evaluation


def test_a_last_line_without_its_end_counts_where_it_is_whole(tmp_path):
    """Only its line end was lost."""
    path = tmp_path / "results.jsonl"
    written(path, TRIAL)
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    other = trial_of(unit_of(attempt=2))
    written(path, other)
    assert read_trials(path) == (TRIAL, other)


def test_a_torn_last_line_is_no_result_even_with_a_line_end(tmp_path):
    """An editor has put it there; the trial is run again."""
    path = tmp_path / "results.jsonl"
    written(path, TRIAL)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[-60:-30] + b"\n\n")
    written(path, trial_of(unit_of(attempt=2)))
    assert path.read_bytes().startswith(whole)
    assert len(read_trials(path)) == 2


def test_a_bad_line_in_the_middle_is_named_with_what_to_do(tmp_path):
    """It may be anything: nothing is taken away that a person has not seen."""
    path = tmp_path / "results.jsonl"
    written(path, TRIAL)
    head, row = path.read_text().splitlines()
    path.write_text(f"{head}\n{row[:50]}\n{row}\n")
    with pytest.raises(
        ConfigError, match="line 2 is no result of an evaluation: it is no JSON"
    ) as e:
        Results(path)
    assert "sed -i 2d" in e.value.mend


def test_a_file_of_something_else_is_not_emptied(tmp_path):
    """Notes without a line end are no line that a crash has left."""
    path = tmp_path / "notes.txt"
    path.write_text("buy milk")
    with pytest.raises(ConfigError, match="line 1 is no result"):
        written(path, TRIAL)
    assert path.read_text() == "buy milk"


@pytest.mark.parametrize("kind", ["header", "trial"])
def test_what_a_newer_version_has_written_is_not_guessed_at(tmp_path, kind):
    """Its fields may mean something else."""
    path = tmp_path / "results.jsonl"
    row = {"instance_id": "a", "instance_digest": "d", "grade": "resolved", "schema": 99}
    path.write_text(
        json.dumps(row if kind == "trial" else {"evaluation": "e", "schema": 99}) + "\n"
    )
    with pytest.raises(ConfigError, match="line 1: it is of format 99") as caught:
        Results(path)
    assert caught.value.mend == "Update Turnout."


def test_of_files_that_were_put_together_the_first_names_the_runs(tmp_path):
    """A run that is under way is still found."""
    path = tmp_path / "results.jsonl"
    first = written(path, TRIAL)
    second = tmp_path / "other.jsonl"
    written(second, trial_of(unit_of(attempt=2)))
    path.write_bytes(path.read_bytes() + second.read_bytes())
    assert Results(path).evaluation == first.evaluation
    assert len(read_trials(path)) == 2


def test_a_file_of_tasks_is_told_as_what_it_is(tmp_path):
    """It is easily taken for that of its results."""
    path = tmp_path / "bugs.jsonl"
    path.write_text('{"instance_id": "a", "problem_statement": "It fails."}\n')
    with pytest.raises(ConfigError) as caught:
        Results(path)
    assert "bugs.results.jsonl" in caught.value.mend
