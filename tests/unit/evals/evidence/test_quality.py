"""What an evaluation shows of each model, and what it shows of none."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trials import conditions_of

from turnout.core.govern.evidence import Score
from turnout.core.ids import RunId
from turnout.core.inference import StepKind
from turnout.errors import UsageError
from turnout.evals.conditions.model import TaskSet
from turnout.evals.evidence.quality import Wish, evaluation_of
from turnout.evals.grading.model import GradeName
from turnout.evals.report.model import Unfit
from turnout.evals.trials.model import KindUsage, Trial

NOW = datetime(2026, 2, 1, tzinfo=UTC)
WISH = Wish("bugs.results.jsonl")


def trial(
    task: str,
    model: str = "m",
    grade: GradeName = "resolved",
    *,
    arm: str = "",
    kinds: dict[StepKind, str] | None = None,
    attempt: int = 1,
) -> Trial:
    """Return a trial in which a model did everything, but for the kinds of calls that are named."""
    used: dict[StepKind, str] = {"plan": model, "act": model, "answer": model, **(kinds or {})}
    return Trial(
        instance_id=task,
        instance_digest=f"digest of {task}",
        grade=grade,
        arm=arm or f"model:{model}",
        arm_digest=arm or model,
        attempt=attempt,
        run_id=RunId(f"run-{task}-{arm or model}-{attempt}"),
        usage=tuple(KindUsage(kind, who, 1, 10, 2) for kind, who in used.items()),
        started_at=NOW - timedelta(days=1),
    )


def scores(*trials: Trial, wish: Wish = WISH) -> list[Score]:
    """Return what trials show."""
    return list(evaluation_of(trials, wish, NOW).evaluation.scores)


def notes(*trials: Trial, wish: Wish = WISH) -> str:
    """Return what was left out."""
    return " ".join(evaluation_of(trials, wish, NOW).notes)


def test_each_model_is_scored_on_what_it_did_alone() -> None:
    """On the same tasks, with the date of the last of them."""
    trials = [
        trial("a"),
        trial("b", grade="unresolved"),
        trial("a", "n", "tests_touched"),
        trial("b", "n", "does_not_apply"),
    ]
    shown = evaluation_of(trials, WISH, NOW).evaluation
    assert shown.scores == (Score("m", 1, 2), Score("n", 0, 2))
    assert (shown.task, shown.mode, shown.at) == ("coding", "hidden", NOW - timedelta(days=1))
    (first, _) = shown.results()
    assert first.source == f"evaluation {shown.id}, hidden tests: bugs.results.jsonl"


def test_an_arm_of_several_models_says_nothing_of_any_of_them() -> None:
    """Nor do those of its trials that one model did alone: they are the easy ones."""
    auto = [
        trial("a", "n", arm="auto"),
        trial("b", "n", "unresolved", arm="auto", kinds={"act": "m"}),
    ]
    both = [trial("a"), trial("b", grade="unresolved"), *auto]
    assert scores(*both) == [Score("m", 1, 2)]
    assert "Arm auto says nothing of one model: m, n worked on it." in notes(*both)
    with pytest.raises(UsageError, match="nothing of any one model") as refused:
        scores(*auto)
    assert "model:ID" in refused.value.mend


@pytest.mark.parametrize(
    ("kind", "counts"), [("answer", True), ("summary", False), ("review", False)]
)
def test_only_the_answer_may_be_another_models(kind: StepKind, counts: bool) -> None:
    """It comes after the work; summaries and reviews steer it."""
    own, other = trial("a"), trial("a", "n", kinds={kind: "o"})
    assert [score.subject for score in scores(own, other)] == ["m", *(["n"] if counts else [])]


def test_tasks_without_a_grade_of_every_model_are_left_out() -> None:
    """Else one would be scored on harder tasks than the other."""
    trials = [trial("a"), trial("b"), trial("a", "n"), trial("b", "n", "infrastructure")]
    assert scores(*trials) == [Score("m", 1, 1), Score("n", 1, 1)]
    assert "1 trial could not be graded." in notes(*trials)
    assert "1 task was left out: not every model has a grade there." in notes(*trials)
    assert scores(*trials, wish=replace(WISH, models=("m",))) == [Score("m", 2, 2)]
    with pytest.raises(UsageError, match="No task has a grade of each of m, n"):
        scores(trials[0], trial("b", "n"))


def test_a_task_counts_once_however_often_it_was_tried() -> None:
    """With the mean of its tries."""
    lucky = [trial("a", attempt=n, grade="resolved" if n < 3 else "unresolved") for n in (1, 2, 3)]
    assert scores(*lucky) == [Score("m", 1, 1)]
    steady = [trial("b", attempt=n, grade="unresolved") for n in (1, 2, 3)]
    assert scores(*lucky, *steady) == [Score("m", 1, 2)]


def test_results_of_different_kinds_are_never_mixed() -> None:
    """Which are meant has to be said."""
    hidden = trial("a")
    visible = replace(trial("b", grade="unresolved"), mode="visible")
    strict = replace(visible, strict=True)
    with pytest.raises(UsageError, match=r"hidden \(1\), visible \(1\), visible, strict \(1\)"):
        scores(hidden, visible, strict)
    assert scores(hidden, visible, strict, wish=replace(WISH, mode="hidden")) == [Score("m", 1, 1)]
    only = replace(WISH, mode="visible", strict=False)
    assert evaluation_of([hidden, visible, strict], only, NOW).evaluation.mode == "visible"
    with pytest.raises(UsageError, match="no such results"):
        scores(hidden, wish=replace(WISH, mode="visible"))


def test_tasks_whose_tests_say_nothing_are_left_out() -> None:
    """Whether a trial or a check of the set has found that."""
    broken = replace(trial("b"), failed_before=False)
    told = Unfit("c", "digest of c", "The fix that is known does not pass.")
    found = scores(trial("a"), broken, trial("c"), wish=replace(WISH, unfit=(told,)))
    assert found == [Score("m", 1, 1)]


def test_the_work_of_another_agent_says_nothing_of_its_model() -> None:
    """Nor does an arm in which no model answered."""
    other = replace(trial("a", "n", arm="mini"), run_id=None)
    silent = replace(trial("a", "o"), usage=())
    said = notes(trial("a"), other, silent)
    assert "Arm mini says nothing: it was another agent's work." in said
    assert "Arm model:o says nothing: no model answered." in said


def test_no_results_are_an_error() -> None:
    """So is a model that they do not have."""
    with pytest.raises(UsageError, match="There are no results"):
        scores()
    with pytest.raises(UsageError, match="nothing of 'x'") as refused:
        scores(trial("a"), wish=replace(WISH, models=("x",)))
    assert "They do of m." in refused.value.mend


GRADES: st.SearchStrategy[GradeName] = st.sampled_from(["resolved", "unresolved", "infrastructure"])


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("mn"), GRADES), min_size=1))
def test_the_same_results_in_another_order_are_the_same_evaluation(
    rows: list[tuple[str, str, GradeName]],
) -> None:
    """And no score is more than was tried, all of the same number of tasks."""
    trials = [trial(*row, attempt=n) for n, row in enumerate(rows)]
    try:
        first = evaluation_of(trials, WISH, NOW).evaluation
    except UsageError:
        return
    assert evaluation_of(trials[::-1], WISH, NOW).evaluation == first
    assert len({score.tried for score in first.scores}) == 1
    assert all(0 <= score.solved <= score.tried for score in first.scores)


def test_an_evaluation_is_of_its_set_whatever_of_it_was_graded() -> None:
    """Results of the same tasks may be ranked together, though one of them could not be graded."""
    whole = [trial("a"), trial("b")]
    short = [trial("a"), trial("b", grade="infrastructure")]
    one, two = (evaluation_of(each, WISH, NOW).evaluation for each in (whole, short))
    assert one.tasks == two.tasks != ""
    other = evaluation_of([*whole, trial("c")], WISH, NOW).evaluation
    assert other.tasks != one.tasks
    rows = tuple((name, f"digest of {name}") for name in "bca")
    under = conditions_of(tasks=TaskSet("bugs.jsonl", rows), mode="hidden")
    cut = evaluation_of(whole, replace(WISH, conditions=[under], beside=True), NOW).evaluation
    assert (cut.tasks, cut.beside) == (other.tasks, True)
    seen = replace(under, mode="visible")
    assert evaluation_of(whole, replace(WISH, conditions=[seen]), NOW).evaluation.tasks == one.tasks


def many(tasks: int, model: str, solved: int) -> list[Trial]:
    """Return a trial on each of so many tasks, of which a model has resolved the first."""
    return [
        trial(f"t{n:02}", model, "resolved" if n < solved else "unresolved") for n in range(tasks)
    ]


def test_whether_the_ranking_is_more_than_chance_is_told() -> None:
    """On the common tasks, in pairs, stricter with every model."""
    far = evaluation_of([*many(12, "m", 11), *many(12, "n", 2)], WISH, NOW)
    assert far.ranking == "On 12 common tasks m is told apart from n (p 0.004)."
    assert far.too_few == ""
    near = evaluation_of([*many(12, "m", 5), *many(12, "n", 2), *many(12, "o", 12)], WISH, NOW)
    assert "o is told apart from m (p 0.016), n (p 0.004)." in near.ranking
    alike = evaluation_of([*many(12, "m", 5), *many(12, "n", 2)], WISH, NOW)
    assert "m cannot be told apart from n (p 0.250): which of them ranks" in alike.ranking
    assert evaluation_of(many(12, "m", 5), WISH, NOW).ranking == ""


def test_too_few_tasks_and_what_strict_grading_has_failed_are_told() -> None:
    """Both make a model look other than it is."""
    few = evaluation_of([*many(9, "m", 9), *many(9, "n", 0)], WISH, NOW)
    assert few.too_few in few.notes
    assert few.too_few.startswith("9 tasks are too few to rank models by")
    touched = [trial(f"t{n:02}", "n", "tests_touched") for n in range(3)]
    rows = [*many(12, "m", 9), *touched, *many(12, "n", 9)[3:]]
    assert "3 of 12 trials of n failed for a change to tests" in notes(*rows)
