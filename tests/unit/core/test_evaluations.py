"""What counts of the evaluations that are applied."""

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from turnout.core.govern.evidence import Evaluation, Score, in_force

AT = datetime(2026, 1, 1, tzinfo=UTC)
SCORES = (Score("m", 1, 4), Score("n", 3, 4))
OLD = Evaluation("old", "coding", "hidden", AT, "set", SCORES, tasks="s")


def test_the_last_evaluation_of_a_model_counts() -> None:
    """What it says nothing of stays as it was."""
    new = replace(OLD, id="new", scores=(Score("m", 4, 4),))
    assert [(r.subject, r.solved) for r in in_force([OLD, new])] == [("m", 4), ("n", 3)]
    assert [(r.subject, r.solved) for r in in_force([new, OLD])] == [("m", 1), ("n", 3)]


def test_figures_with_and_without_the_tests_in_sight_are_never_ranked_together() -> None:
    """The last evaluation of a task kind says which of the two count; other kinds do not care."""
    seen = replace(OLD, id="seen", mode="visible", scores=(Score("m", 4, 4),))
    other = replace(OLD, id="other", task="reasoning")
    found = in_force([OLD, other, seen])
    assert {(r.subject, r.task) for r in found} == {
        ("m", "coding"),
        ("m", "reasoning"),
        ("n", "reasoning"),
    }
    assert in_force([seen, OLD]) == in_force([OLD])


def subjects(*applied: Evaluation) -> list[tuple[str, int]]:
    """Return which models count, and what they have solved."""
    return [(each.subject, each.solved) for each in in_force(applied)]


def test_figures_of_different_sets_of_tasks_are_not_ranked_together() -> None:
    """Easier tasks would make a better model: the last set counts, and comes back with its own."""
    other = replace(OLD, id="other", tasks="t", scores=(Score("m", 4, 4),))
    again = replace(OLD, id="again", scores=(Score("o", 2, 4),))
    assert subjects(OLD, other) == [("m", 4)]
    assert subjects(OLD, other, again) == [("m", 1), ("n", 3), ("o", 2)]
    unknown = replace(OLD, id="unknown", tasks="", scores=(Score("o", 2, 4),))
    assert subjects(OLD, unknown) == [("o", 2)]
    assert subjects(unknown, replace(unknown, id="two", scores=(Score("p", 1, 4),))) == [("p", 1)]


def test_sets_are_ranked_together_where_somebody_says_so() -> None:
    """What counted before counts on, until something is applied that is not to be beside it."""
    beside = replace(OLD, id="beside", tasks="t", beside=True, scores=(Score("m", 4, 4),))
    assert subjects(OLD, beside) == [("m", 4), ("n", 3)]
    assert subjects(OLD, beside, replace(beside, id="alone", beside=False)) == [("m", 4)]
    seen = replace(beside, id="seen", mode="visible")
    assert subjects(OLD, seen) == [("m", 4)]


EVALUATIONS = st.lists(
    st.builds(
        replace,
        st.just(OLD),
        id=st.text("ab", min_size=1, max_size=3),
        task=st.sampled_from(["coding", "chat"]),
        mode=st.sampled_from(["hidden", "visible"]),
        scores=st.lists(
            st.builds(Score, st.sampled_from("mno"), st.integers(0, 4), st.just(4)),
            max_size=3,
            unique_by=lambda score: score.subject,
        ).map(tuple),
    ),
    max_size=6,
)


@given(EVALUATIONS)
def test_of_a_task_kind_only_one_way_of_measuring_counts(applied: list[Evaluation]) -> None:
    """And of each model one figure, which some evaluation has said."""
    found = in_force(applied)
    subjects = [(result.subject, result.task) for result in found]
    assert len(set(subjects)) == len(subjects)
    for result in found:
        modes = {each.mode for each in applied if result in each.results()}
        last = [each.mode for each in applied if each.task == result.task][-1]
        assert last in modes
