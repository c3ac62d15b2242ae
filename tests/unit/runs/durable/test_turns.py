"""Whose turn it is: fair among projects, within limits, by priority within one."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from turnout.core.service.turns import Claimable, Standing
from turnout.runs.durable.turns import Turns


def waiting(number, project="red", priority=0, repository="shop"):
    """Return a run that waits."""
    return Claimable(f"run-{number}", project, repository, priority, number)


def test_nothing_waits_nobody_has_the_turn():
    """Whatever is worked on."""
    assert Turns().pick(Standing((), (waiting(1),), ())) is None


def test_the_highest_priority_of_a_project_goes_first_then_the_oldest():
    """However they are listed."""
    queued = [waiting(1), waiting(3, priority=5), waiting(2, priority=5)]
    assert Turns().pick(Standing(queued, (), ())) == "run-2"


def test_no_priority_lets_a_project_pass_another():
    """The one with less under way has the turn."""
    queued = [waiting(1, "red", priority=100), waiting(2, "blue")]
    assert Turns().pick(Standing(queued, [waiting(0, "red")], ())) == "run-2"


def test_of_equal_projects_the_one_that_waited_longest_has_the_turn():
    """One that was never served before all others."""
    queued = [waiting(1, "red"), waiting(2, "blue"), waiting(3, "green")]
    assert Turns().pick(Standing(queued, (), ("blue", "red"))) == "run-3"
    assert Turns().pick(Standing(queued[:2], (), ("blue", "red"))) == "run-2"


def test_a_busy_repository_lets_the_next_run_pass():
    """A limit holds for one repository of one project."""
    queued = [waiting(1, priority=9), waiting(2, repository="other")]
    standing = Standing(queued, [waiting(0)], ())
    assert Turns(per_repository=1).pick(standing) == "run-2"
    assert Turns(per_project=1).pick(standing) is None


runs = st.builds(
    waiting,
    st.integers(0, 10_000),
    st.sampled_from(["red", "blue", "green"]),
    st.integers(-100, 100),
    st.sampled_from(["a", "b"]),
)


@given(
    st.lists(runs, max_size=30, unique_by=lambda run: run.number),
    st.none() | st.integers(1, 3),
    st.none() | st.integers(1, 2),
)
def test_limits_hold_and_all_come_to_their_turn(queued, per_project, per_repository):
    """Never more at once than is allowed, and no project far ahead of one that waits."""
    turns, running, served, ended = Turns(per_project, per_repository), [], [], []
    left = list(queued)
    while left or running:
        picked = turns.pick(Standing(left, running, served)) if len(running) < 4 else None
        if picked is None:
            ended.append(running.pop(0))
            continue
        run = next(each for each in left if each.run_id == picked)
        left.remove(run)
        running.append(run)
        served = [*(p for p in served if p != run.project), run.project]
        projects = Counter(each.project for each in running)
        places = Counter((each.project, each.repository) for each in running)
        assert per_project is None or max(projects.values()) <= per_project
        assert per_repository is None or max(places.values()) <= per_repository
    assert len(ended) == len(queued)
