"""How large the set is that trials are of, and how much of it was tried."""

from dataclasses import replace

from tests.trials import arm_of_trials, conditions_of, trial

from turnout.evals.conditions.model import TaskSet
from turnout.evals.report.counting.members import current, task_set_of
from turnout.evals.report.figures import summarise
from turnout.evals.report.model import LeftOut

ROWS = tuple((f"task-{n:02}", f"row-task-{n:02}") for n in range(4))


def test_without_conditions_the_set_is_what_was_tried() -> None:
    """Rows of older versions tell no more."""
    seen = task_set_of([], [trial("a"), trial("b"), trial("a", attempt=2)])
    assert [name for name, _ in seen.members] == ["a", "b"]
    assert (seen.planned, seen.done, seen.untried, seen.name) == (0, 0, (), "")


def test_a_set_is_what_commands_were_to_run() -> None:
    """Two arms on four tasks are eight trials, of which three have a result."""
    trials = [*arm_of_trials("auto", ["resolved", "unresolved"])]
    trials += arm_of_trials("model:big", ["infrastructure"])
    seen = task_set_of([conditions_of()], trials)
    assert (len(seen.members), seen.planned, seen.done) == (4, 8, 3)
    assert seen.untried == ("task-02", "task-03")
    assert seen.name == "tasks.jsonl"


def test_what_no_trial_was_planned_on_is_no_trial_that_is_missing() -> None:
    """It is told apart with its reason; once it has a trial it is as any other."""
    tasks = TaskSet("tasks.jsonl", ROWS, (("task-03", "flaky"), ("task-00", "slow")))
    seen = task_set_of([conditions_of(tasks=tasks)], arm_of_trials("auto", ["resolved"]))
    assert seen.left_out == (LeftOut("task-03", "flaky"),)
    assert seen.untried == ("task-01", "task-02")
    assert (seen.planned, seen.done) == (6, 1)
    mended = task_set_of([conditions_of(tasks=tasks), conditions_of()], [])
    assert mended.left_out == ()


def test_several_commands_add_up() -> None:
    """More tasks, more arms and more tries; of a row or an arm that changed the newest counts."""
    first = conditions_of(tasks=TaskSet("tasks.jsonl", ROWS[:1]))
    changed = ((ROWS[0][0], "changed"), *ROWS[1:2])
    second = replace(conditions_of(), tasks=TaskSet("more.jsonl", changed), repeats=2)
    second = replace(second, arms=(replace(second.arms[0], digest="other"),))
    trials = arm_of_trials("auto", ["resolved", "resolved"])
    newer = replace(trials[1], arm_digest="other")
    seen = task_set_of([first, second], [*trials, newer])
    assert seen.name == "tasks.jsonl, more.jsonl"
    assert seen.members == (*changed, ROWS[0])
    assert (seen.planned, seen.done) == (2 * 2 * 2, 1)


def test_results_of_a_row_that_was_changed_are_left_out_and_told() -> None:
    """One bug would count twice, and make every interval narrower than it is."""
    old = trial("task-00", instance_digest="before", arm="auto", arm_digest="digest-auto")
    trials = [old, *arm_of_trials("auto", ["resolved", "unresolved"])]
    assert current([conditions_of()], trials) == (tuple(trials[1:]), ("task-00",))
    report = summarise(trials, conditions=[conditions_of()])
    assert report.sections[0].arms[0].graded == 2
    assert report.notes == (
        "Results of a row that was changed since are left out, those before the change: task-00.",
    )
    assert current([], trials) == (tuple(trials), ())
    other = conditions_of(tasks=TaskSet("other.jsonl", (("task-00", "before"),)))
    assert current([conditions_of(), other], trials) == (tuple(trials), ())
