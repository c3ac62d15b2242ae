"""Where the time of a run went."""

import json

import pytest
from tests.unit.runs.observe.records import RUN, answered, timed, whole
from tests.unit.runs.parts import COMMIT, TASK

from turnout.cli.runs.slowest import times_json, times_text
from turnout.core.events import RunResumed, RunStarted, WorkspaceReady
from turnout.runs.observe.slowest import times_of


def test_the_slowest_step_comes_first_with_what_its_time_went_to() -> None:
    """The parts of a step, and of the run, come to the whole."""
    times = times_of(whole())
    assert times.seconds == 50.0
    assert [(step.step, step.seconds) for step in times.steps] == [(1, 15.0), (2, 11.0)]
    first, second = times.steps
    assert first.parts == {"model": 10.0, "tools": 3.0, "checkpoint": 1.0, "rest": 1.0}
    assert second.parts == {"model": 2.0, "tools": 0.5, "approval": 7.0, "rest": 1.5}
    assert (first.kind, first.model, first.tools) == ("act", "m", ("run",))
    assert sum(times.parts.values()) == 50.0
    assert times.parts["workspace"] == 3.0
    assert times.parts["tests"] == 1.5


def test_a_run_that_has_not_ended_is_told_so_far() -> None:
    """Its open step counts up to its newest entry."""
    times = times_of(whole()[:8])
    assert times.seconds == 21.0
    assert [(step.step, step.seconds) for step in times.steps] == [(1, 15.0)]


def test_what_is_written_after_the_end_takes_no_time() -> None:
    """A correction may come days later."""
    late = timed((90_000, whole()[-2].event))
    assert times_of([*whole(), *late]).seconds == 50.0


def test_time_without_a_worker_is_no_time_of_the_model() -> None:
    """A call that was under way counts from when the next worker has sent it again."""
    left = [(each.at - whole()[0].at).total_seconds() for each in whole()[:5]]
    times = times_of(
        timed(
            *((at, each.event) for at, each in zip(left, whole()[:5], strict=True)),
            (19, RunResumed(2, "other")),
            (20, WorkspaceReady("namespaces", "pytest -q", (), 1.0)),
            (24, answered(1)),
        )
    )
    assert times.parts == {"model": 4.0, "workspace": 4.0, "tests": 1.5, "rest": 14.5}
    assert times.steps[0].parts == {"model": 4.0, "rest": 14.0}


def test_people_read_shares_of_the_time() -> None:
    """One line for the run, one for each step that is wanted."""
    text = times_text(RUN, times_of(whole()), 1)
    shares = "model 24%, tools 7%, checkpoint 2%, approval 14%, workspace 6%, tests 3%, rest 44%"
    assert text.splitlines() == [
        f"{RUN}  50.0 s: {shares}",
        "",
        "step  kind      seconds  of run  where",
        "   1  act         15.00     30%  model 67%, tools 20%, checkpoint 7%, rest 7% (run)",
    ]


def test_scripts_read_seconds_of_every_part() -> None:
    """Those that took none are 0."""
    shown = json.loads(json.dumps(times_json(RUN, times_of(whole()), 1)))
    assert (shown["run_id"], shown["seconds"], len(shown["steps"])) == (RUN, 50.0, 1)
    assert shown["steps"][0]["parts"] == {
        "model": 10.0,
        "tools": 3.0,
        "checkpoint": 1.0,
        "approval": 0.0,
        "workspace": 0.0,
        "tests": 0.0,
        "rest": 1.0,
    }


def test_a_run_without_steps_says_so() -> None:
    """Nor does a record of one moment divide by nothing."""
    times = times_of(timed((0, RunStarted(TASK, COMMIT, "loop"))))
    assert times_text(RUN, times, 10).endswith("no time\nIt has no steps yet.")
    with pytest.raises(ValueError, match="without entries"):
        times_of([])
