"""Exit codes and the summary of a finished run."""

from dataclasses import replace

import pytest
from tests.unit.runs.parts import NO_PATCH, PATCH
from tests.unit.runs.test_summary import STARTED, call, record

from turnout.cli.report import exit_code, report_text, result_json, result_text
from turnout.core.events import ModelCallFailed
from turnout.core.runs import Outcome, Patch, TestReport, Verdict, VerdictName
from turnout.runs.summary import RunResult, fold


def ended(verdict: VerdictName | None, outcome: Outcome, patch: Patch = PATCH) -> RunResult:
    """Return a run that ended so."""
    judged = Verdict(verdict, None, None, True, (), "Said so.") if verdict else None
    return replace(fold(record(STARTED)), verdict=judged, outcome=outcome, patch=patch)


@pytest.mark.parametrize(
    ("verdict", "outcome", "patch", "code"),
    [
        ("resolved", "answered", PATCH, 0),
        ("no_regression", "answered", PATCH, 0),
        ("resolved", "step_limit", PATCH, 0),
        ("no_tests", "answered", PATCH, 0),
        ("no_tests", "answered", NO_PATCH, 1),
        ("no_tests", "step_limit", PATCH, 1),
        ("not_resolved", "answered", PATCH, 1),
        ("tests_touched", "answered", PATCH, 1),
        (None, "cancelled", PATCH, 1),
        ("not_resolved", "stuck", NO_PATCH, 1),
        ("not_resolved", "capped", PATCH, 3),
        ("resolved", "capped", PATCH, 3),
        ("not_resolved", "refused", NO_PATCH, 3),
        ("not_resolved", "failed", NO_PATCH, 1),
    ],
)
def test_exit_codes_are_as_documented(
    verdict: VerdictName | None, outcome: Outcome, patch: Patch, code: int
) -> None:
    """Scripts rely on them."""
    assert exit_code(ended(verdict, outcome, patch)) == code


@pytest.mark.parametrize(("status", "code"), [(401, 4), (503, 4), (None, 4), (400, 1)])
def test_a_model_that_cannot_be_reached_is_an_unfit_environment(
    status: int | None, code: int
) -> None:
    """Also where it went away in the middle of the run."""
    failed = ModelCallFailed(1, "act", "main", "k", status, "upstream", "No.")
    run = fold(record(STARTED, failed))
    assert exit_code(replace(run, outcome="failed", verdict=None)) == code


def test_the_summary_says_what_was_done_and_what_it_took() -> None:
    """Diff, verdict, outcome, models and cost are there."""
    run = replace(fold(record(STARTED, call(1_250_000))), outcome="answered", patch=PATCH)
    text = result_text(replace(run, reason="It answered."), colour=False)
    assert "+b" in text
    assert "Outcome: answered. It answered." in text
    assert "1 model call (m × 1)" in text
    assert "$1.25" in text


def test_unpriced_is_said() -> None:
    """An unknown price never looks like nothing."""
    assert "unpriced" in result_text(fold(record(STARTED, call(None))), colour=False)


def test_the_object_has_the_exit_code_and_the_delivery() -> None:
    """One object tells a script everything."""
    made = result_json(ended("resolved", "answered"), 0, {"kind": "apply", "done": True})
    assert (made["exit_code"], made["delivery"]) == (0, {"kind": "apply", "done": True})
    assert made["verdict"]["name"] == "resolved"


@pytest.mark.parametrize(
    ("report", "text"),
    [
        (TestReport("t", 1, ("a",), ("b",), 1, ""), "1 failed, 1 passed"),
        (TestReport("t", 0, (), (), 1, ""), "passed"),
        (TestReport("t", 2, (), (), 1, ""), "failed (exit status 2)"),
        (TestReport("t", None, (), (), 9, "", timed_out=True), "timed out after 9 s"),
        (TestReport("t", 5, (), (), 1, "", found=False), "none found"),
    ],
)
def test_a_test_run_in_a_few_words(report: TestReport, text: str) -> None:
    """Also where the runner names no tests."""
    assert report_text(report) == text
