"""The figures of an evaluation."""

import json

from turnout.core.ids import RunId
from turnout.core.money import Micros
from turnout.evals.grade import GradeName
from turnout.evals.report import report_json, report_text, summarise
from turnout.evals.trial import Trial


def trial(name: str, grade: GradeName, *, steps: int = 3, cost: int | None = 1_000) -> Trial:
    """Make one line of the results."""
    return Trial(
        instance_id=name,
        instance_digest="d",
        run_id=RunId("run-1"),
        grade=grade,
        detail="",
        dropped=(),
        outcome="answered",
        reason="",
        verdict="resolved",
        steps=steps,
        model_calls=steps,
        models=("m",),
        seconds=10.0 * steps,
        cost_micros=None if cost is None else Micros(cost),
        diff="",
    )


def test_what_could_not_be_graded_is_in_no_rate() -> None:
    """It is counted apart, and so is what was not run."""
    trials = [trial("a", "resolved"), trial("b", "no_patch"), trial("c", "infrastructure")]
    report = summarise(trials, 5)
    assert (report.resolved, report.graded, report.rate) == (1, 2, 0.5)
    text = report_text(report)
    assert "resolved 1 of 2 graded: 50% (95 % interval" in text
    assert "1 could not be graded and are in no rate" in text
    assert "2 of 5 instances were not run" in text


def test_one_unknown_price_makes_the_cost_unknown() -> None:
    """A sum of some of the costs would look cheaper than it was."""
    assert summarise([trial("a", "resolved"), trial("b", "resolved")], 2).cost_micros == 2_000
    report = summarise([trial("a", "resolved"), trial("b", "resolved", cost=None)], 2)
    assert report.cost_micros is None
    assert "cost unpriced" in report_text(report)


def test_every_instance_has_a_line() -> None:
    """With grade, outcome, steps, seconds and cost."""
    line = report_text(summarise([trial("abc", "unresolved")], 1)).splitlines()[1]
    assert line.split() == ["abc", "unresolved", "answered", "3", "30", "$0.001"]


def test_the_json_report_is_json() -> None:
    """Figures and trials."""
    told = json.loads(json.dumps(report_json(summarise([trial("a", "resolved")], 1))))
    assert told["resolved"] == 1
    assert told["trials"][0]["instance_id"] == "a"


def test_an_evaluation_without_trials_has_no_rate() -> None:
    """Nothing is divided by nothing."""
    report = summarise([], 3)
    assert report.rate is None
    assert "3 of 3 instances were not run" in report_text(report)
