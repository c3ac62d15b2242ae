"""Two arms on the same tasks."""

from tests.trials import arm_of_trials, trial

from turnout.evals.report.counting.comparing import compare, comparisons
from turnout.evals.report.words import finding


def test_every_common_task_is_in_one_of_four_cells() -> None:
    """Both, either alone, neither; tasks that one arm has no grade for are in none."""
    arm = arm_of_trials("a", ["resolved", "resolved", "unresolved", "no_patch", "infrastructure"])
    other = arm_of_trials("b", ["resolved", "unresolved", "resolved", "unresolved", "resolved"])
    found = compare(("a", arm), ("b", other))
    assert found is not None
    cells = (found.both, found.only_arm, found.only_reference, found.neither)
    assert (cells, found.tasks) == ((1, 1, 1, 1), 4)
    assert found.discordant == ("task-01", "task-02")
    assert (found.difference, found.p) == (0.0, 1.0)


def test_ratios_are_of_totals_on_common_tasks() -> None:
    """One unknown cost leaves the ratio of costs unknown, and that alone."""
    arm = arm_of_trials("a", ["resolved"] * 6, cost=500)
    other = arm_of_trials("b", ["resolved"] * 6, cost=2000)
    found = compare(("a", arm), ("b", other))
    assert found is not None
    assert found.cost is not None
    assert found.cost.value == 0.25
    unpriced = compare(("a", [*arm[1:], trial("task-00", cost_micros=None)]), ("b", other))
    assert unpriced is not None
    assert unpriced.cost is None
    assert unpriced.steps is not None
    assert unpriced.steps.value == 1.0


def test_several_tries_of_a_task_are_one_task() -> None:
    """What a repeated task shows is the share of its tries."""
    arm = [trial("t", attempt=n) for n in (1, 2)]
    other = [trial("t", "resolved", attempt=1), trial("t", "unresolved", attempt=2)]
    found = compare(("a", arm), ("b", other))
    assert found is not None
    assert (found.tasks, found.only_arm, found.difference) == (1, 1, 0.5)


def test_rows_that_changed_are_not_paired() -> None:
    """A result of another row is no result of this one."""
    assert compare(("a", [trial("t")]), ("b", [trial("t", instance_digest="new")])) is None


def test_several_comparisons_make_each_of_them_stricter() -> None:
    """The adjusted value is never below the exact one, and the least gap grows."""
    arm = arm_of_trials("a", ["resolved"] * 7 + ["unresolved"] * 13)
    worse = arm_of_trials("b", ["unresolved"] * 20)
    alone = comparisons([(("a", arm), ("b", worse))])
    beside = comparisons([(("a", arm), (name, worse)) for name in ("b", "c")])
    assert alone[0].adjusted_p == alone[0].p == 2 / 2**7
    assert [each.adjusted_p for each in beside] == [2 * alone[0].p] * 2
    assert alone[0].smallest is not None
    assert beside[0].smallest is not None
    assert beside[0].smallest > alone[0].smallest


def test_interval_and_p_of_a_sentence_never_deny_each_other() -> None:
    """Of 8 and 2 in 9, a difference that one comparison shows and four do not."""
    big = arm_of_trials("big", ["resolved"] * 8 + ["unresolved"])
    small = arm_of_trials("small", ["resolved"] * 2 + ["unresolved"] * 7)
    alone = comparisons([(("small", small), ("big", big))])[0]
    assert alone.p < 0.05
    assert alone.adjusted_bounds.high < 0
    assert finding(alone).startswith("small resolves fewer than big")
    beside = comparisons([(("small", small), (name, big)) for name in "abcd"])[0]
    assert (beside.family, beside.p) == (4, alone.p)
    assert beside.adjusted_p > 0.05
    assert beside.adjusted_bounds.high >= 0
    assert "cannot be told apart" in finding(beside)
    assert "after 4 comparisons)" in finding(beside)
    assert "would often go unseen" in finding(beside)


def test_what_a_resolved_task_costs_is_compared_as_well() -> None:
    """An arm that resolves nothing is cheap by the task, and dear by the fix."""
    dear = arm_of_trials("dear", ["resolved"] * 8, cost=1_000)
    cheap = arm_of_trials("cheap", ["resolved"] * 2 + ["unresolved"] * 6, cost=500)
    found = compare(("cheap", cheap), ("dear", dear))
    assert found is not None
    assert found.cost_per_resolved is not None
    assert found.cost is not None
    assert (found.cost.value, found.cost_per_resolved.value) == (0.5, 2.0)
    assert "and 2.00 times a resolved task." in finding(found)
    none = compare(("a", arm_of_trials("a", ["unresolved"] * 8)), ("dear", dear))
    assert none is not None
    assert none.cost_per_resolved is None
