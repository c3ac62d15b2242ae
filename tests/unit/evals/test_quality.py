"""What an evaluation shows of each model becomes evidence for routing."""

from dataclasses import replace
from datetime import UTC, datetime

from turnout.core.govern.evidence import QualityResult
from turnout.evals.quality import qualities
from turnout.evals.trial import Trial

AT = datetime(2026, 1, 1, tzinfo=UTC)
TRIAL = Trial(
    instance_id="i",
    instance_digest="d",
    run_id=None,
    grade="resolved",
    detail="",
    dropped=(),
    outcome="answered",
    reason="",
    verdict=None,
    steps=1,
    model_calls=1,
    models=("m",),
    seconds=1.0,
    cost_micros=None,
    diff="",
)


def test_each_model_gets_what_it_solved_alone() -> None:
    """A trial that two models worked on, or that could not be graded, counts for none."""
    trials = [
        TRIAL,
        replace(TRIAL, grade="unresolved"),
        replace(TRIAL, grade="infrastructure"),
        replace(TRIAL, models=("m", "n")),
        replace(TRIAL, models=()),
        replace(TRIAL, models=("n",), grade="unresolved"),
    ]
    assert list(qualities(trials, "a set", AT)) == [
        QualityResult("m", "coding", 1, 2, AT, "a set"),
        QualityResult("n", "coding", 0, 1, AT, "a set"),
    ]


def test_nothing_graded_is_nothing_known() -> None:
    """No result is better than an empty one."""
    assert list(qualities([replace(TRIAL, grade="infrastructure")], "a set", AT)) == []
