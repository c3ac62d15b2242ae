"""Two evaluations side by side."""

import pytest
from tests.trials import arm_of_trials, trial

from turnout.errors import UsageError
from turnout.evals.report.html.page import report_html
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
