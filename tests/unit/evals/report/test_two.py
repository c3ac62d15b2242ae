"""Two evaluations side by side."""

from dataclasses import replace

import pytest
from tests.trials import arm_of_trials, conditions_of, trial

from turnout.errors import UsageError
from turnout.evals.conditions.model import TaskSet
from turnout.evals.report.html.page import report_html
from turnout.evals.report.markdown import report_markdown
from turnout.evals.report.text import report_text
from turnout.evals.report.two import Evaluation, compare_evaluations


def test_each_arm_is_compared_with_what_it_was() -> None:
    """By its name, on the tasks of both; what only one has is left out."""
    before = Evaluation(
        "old",
        (*arm_of_trials("auto", ["unresolved"] * 8), *arm_of_trials("model:gone", ["resolved"])),
    )
    after = Evaluation("new", tuple(arm_of_trials("auto", ["resolved"] * 7 + ["unresolved"])))
    (section,) = compare_evaluations(before, after).sections
    (found,) = section.comparisons
    assert (found.arm, found.reference, found.only_arm) == ("auto in new", "auto in old", 7)
    assert [arm.name for arm in section.arms] == ["auto in old", "auto in new"]
    text = report_text(compare_evaluations(before, after))
    assert "auto in new resolves more than auto in old: +88 points" in text
    assert "auto in new against auto in old" in report_html(compare_evaluations(before, after))


def test_single_arms_are_compared_whatever_their_names() -> None:
    """Files of the same name are told apart by letters."""
    report = compare_evaluations(
        Evaluation("r", (trial("t", arm="model:a"),)), Evaluation("r", (trial("t", arm="model:b"),))
    )
    (found,) = report.sections[0].comparisons
    assert (found.arm, found.reference) == ("model:b in B", "model:a in A")


def test_what_cannot_be_compared_is_an_error() -> None:
    """No common arm, none of that name, no common task, other modes."""
    two = Evaluation("two", (trial("t", arm="a"), trial("t", arm="b")))
    other = Evaluation("other", (trial("t", arm="c"),))
    with pytest.raises(UsageError, match="no common arm"):
        compare_evaluations(two, other)
    with pytest.raises(UsageError, match="no common arm 'c'"):
        compare_evaluations(two, two, ["c"])
    changed = Evaluation("changed", (trial("t", arm="a", instance_digest="x"),))
    visible = Evaluation("visible", (trial("t", arm="a", mode="visible"),))
    for one in (changed, visible, Evaluation("x", (trial("t", "infrastructure", arm="a"),))):
        with pytest.raises(UsageError, match="no task in common"):
            compare_evaluations(two, one)


def test_only_the_tasks_of_both_are_compared_and_the_others_are_told() -> None:
    """Rates of different sets beside each other would say nothing."""
    before = Evaluation("old", tuple(arm_of_trials("auto", ["resolved"] * 6)))
    after = Evaluation("new", tuple(arm_of_trials("auto", ["unresolved"] * 4)[1:]))
    report = compare_evaluations(before, after)
    (section,) = report.sections
    assert [(arm.graded, arm.resolved) for arm in section.arms] == [(3, 3), (3, 0)]
    (note,) = report.notes
    assert "3 tasks in both" in note
    assert "3 of old and 0 of new" in note
    for form in (report_text(report), report_markdown(report), report_html(report)):
        assert "3 tasks in both" in " ".join(form.split())
    assert compare_evaluations(before, replace(before, name="x")).notes == ()


def test_a_row_that_was_changed_counts_once_in_its_newest_form() -> None:
    """The old one beside it would count one bug twice."""
    rows = arm_of_trials("auto", ["resolved"] * 4)
    under = conditions_of()
    later = TaskSet("tasks.jsonl", (("task-00", "reworded"), *under.tasks.instances[1:]))
    reworded = replace(rows[0], instance_digest="reworded", grade="unresolved")
    before = Evaluation("old", tuple(rows), (under,))
    after = Evaluation("new", (*rows, reworded), (under, replace(under, tasks=later)))
    report = compare_evaluations(before, after)
    (section,) = report.sections
    assert [(arm.graded, arm.resolved) for arm in section.arms] == [(3, 3), (3, 3)]
    assert any("changed since are left out" in n and "task-00. (new)" in n for n in report.notes)
    twice = Evaluation("both", after.trials, after.conditions)
    (again,) = compare_evaluations(replace(twice, name="a"), twice).sections
    assert [(arm.graded, arm.resolved) for arm in again.arms] == [(4, 3), (4, 3)]
