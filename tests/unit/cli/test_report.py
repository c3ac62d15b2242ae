"""Exit codes and the summary of a finished run."""

import json
from dataclasses import replace

import pytest
from tests.unit.runs.parts import NO_PATCH, PATCH
from tests.unit.runs.test_summary import STARTED, call, record

from turnout.cli.report import (
    Screen,
    closing_text,
    exit_code,
    judged_text,
    report_text,
    result_json,
)
from turnout.core.events import (
    ApprovalAsked,
    ApprovalGiven,
    ModelCallFailed,
    Reviewed,
    ReviewNote,
    RunEnded,
    WorkspaceReady,
)
from turnout.core.ids import ToolCallId
from turnout.core.runs import Outcome, Patch, TestReport, Verdict, VerdictName
from turnout.core.tasks import ReviewAsk
from turnout.core.tools import ToolCall
from turnout.runs.summary import RunResult, fold

READY = WorkspaceReady("namespaces", "pytest -q", (), 0.5)


def ended(verdict: VerdictName | None, outcome: Outcome, patch: Patch = PATCH) -> RunResult:
    """Return a run that ended so."""
    judged = Verdict(verdict, None, None, True, (), "Said so.") if verdict else None
    return replace(fold(record(STARTED, READY)), verdict=judged, outcome=outcome, patch=patch)


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
        (None, "cancelled", PATCH, 130),
        ("resolved", "cancelled", PATCH, 130),
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
    run = fold(record(STARTED, READY, failed))
    assert exit_code(replace(run, outcome="failed", verdict=None)) == code


def test_a_run_that_got_no_workspace_is_an_unfit_environment() -> None:
    """Whoever worked on it: a service puts on record what `turnout run` is refused with."""
    run = fold(record(replace(STARTED, base_commit=""), RunEnded("failed", "No commit `x`.")))
    assert exit_code(run) == 4


def test_a_run_that_waits_is_told_with_its_call_and_how_to_decide() -> None:
    """Not as one that was stopped; long arguments are cut, and nothing steers the terminal."""
    arguments = json.dumps({"path": "a\x1b[2J.py", "content": "x\n" * 9_000})
    asked = ApprovalAsked(2, ToolCall(ToolCallId("c;1"), "write_file", arguments), "write_file:*")
    run = fold(record(STARTED, READY, asked))
    text = f"{judged_text(run, Screen())}\n{closing_text(run, Screen())}"
    assert "stopped" not in text
    assert "Verdict: none yet" in text
    assert "waits for approval (rule write_file:*)" in text
    assert "path: a" in text
    assert "\x1b" not in text
    assert len(text) < 3_000
    for verb in ("approve", "reject"):
        assert f"turnout runs {verb} run-1 --call 'c;1'\n" in f"{text}\n"
    there = closing_text(run, Screen(server="http://there:8700"))
    assert "turnout runs approve run-1 --call 'c;1' --server http://there:8700" in there
    assert "turnout runs show run-1 --full --server http://there:8700" in there
    given = ApprovalGiven(2, asked.call.id, allowed=True, by="ann")
    assert "waits" not in closing_text(fold(record(STARTED, READY, asked, given)), Screen())


def test_diff_and_verdict_stand_before_the_rest_is_known() -> None:
    """They are shown while the change is still being described."""
    judged = judged_text(ended("resolved", "answered"), Screen())
    assert "+b" in judged
    assert judged.endswith("Verdict: resolved. Said so.")
    assert "Outcome" not in judged


def test_what_is_left_out_and_new_tests_are_named() -> None:
    """On the screen, a few of them; to a script, all."""
    left_out = ("__pycache__/", *(f"n{number}.bin" for number in range(6)))
    run = ended("resolved", "answered", replace(PATCH, excluded=left_out))
    assert run.verdict is not None
    run = replace(run, verdict=replace(run.verdict, new_tests=("tests/test_\x1b[2J.py",)))
    text = judged_text(run, Screen())
    assert "New tests: tests/test_" in text
    assert "\x1b" not in text
    assert "Left out of the diff: __pycache__/, n0.bin, n1.bin, n2.bin, n3.bin and 2 more" in text
    made = result_json(run, 0, None)
    assert made["excluded"] == list(left_out)
    assert made["verdict"]["new_tests"] == ["tests/test_\x1b[2J.py"]


def test_the_summary_says_how_it_ended_and_what_it_took() -> None:
    """Explanation, outcome, models and cost are there."""
    run = replace(fold(record(STARTED, call(1_250_000))), outcome="answered", explanation="Why.")
    text = closing_text(replace(run, reason="It answered."), Screen())
    assert text.startswith("Why.\n\n")
    assert "Outcome: answered. It answered." in text
    assert "1 model call (m × 1)" in text
    assert "$1.25" in text


def test_unpriced_is_said() -> None:
    """An unknown price never looks like nothing."""
    assert "unpriced" in closing_text(fold(record(STARTED, call(None))), Screen())


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


def explained(text: str, screen: Screen) -> str:
    """Return how an explanation is shown."""
    return closing_text(replace(ended("resolved", "answered"), explanation=text), screen)


def test_markdown_is_laid_out_for_a_terminal_and_left_alone_in_a_pipe() -> None:
    """Nobody has to read marks, and a file gets what was written."""
    text = "The **start** of `page`:\n\n* one"
    assert explained(text, Screen()).startswith(text)
    shown = explained(text, Screen(width=60, colour=True))
    assert "**" not in shown
    assert "`" not in shown
    assert "\x1b[1mstart\x1b[0m" in shown
    assert "one" in shown


def test_a_narrow_terminal_breaks_no_word() -> None:
    """Lines end between words."""
    text = "paginated bookings overlap whenever somebody subtracts minutes carelessly"
    shown = explained(text, Screen(width=16))
    lines = shown.split("Outcome")[0].split("\n")
    assert [word for line in lines for word in line.split()] == text.split()
    assert max(map(len, lines)) <= 16


def test_markdown_cannot_steer_the_terminal() -> None:
    """Neither directly, nor by entities, nor by links that hide where they lead."""
    text = "a\x1b[2Jb &#x202e;c&#27;[2J [here](https://elsewhere.example/)"
    shown = explained(text, Screen(width=200))
    assert "\x1b[2J" not in shown
    assert "\u202e" not in shown
    assert "\x1b]8" not in shown
    assert "https://elsewhere.example/" in shown


def test_a_change_that_a_review_blocks_is_no_success() -> None:
    """Whatever our tests say; people read why."""
    review = Reviewed(True, "It breaks callers.", (ReviewNote("a.py", 3, "Off by one.", True),))
    run = replace(ended("resolved", "answered", PATCH), review=review)
    assert exit_code(run) == 1
    assert "a.py:3 error: Off by one." in closing_text(run, Screen())


@pytest.mark.parametrize(
    ("review", "outcome", "code", "said"),
    [
        (Reviewed(False, "Good.", decision="approve"), "answered", 0, "Decision: approve."),
        (Reviewed(False, "Well.", decision="annotate"), "answered", 0, "Decision: annotate."),
        (Reviewed(True, "Bad.", decision="block"), "answered", 1, "Decision: block."),
        (Reviewed(True, "?", decided=False), "answered", 1, "Decision: none."),
        (Reviewed(True, "?", decided=False), "capped", 3, "Decision: none."),
        (Reviewed(True, "?", decided=False), "cancelled", 130, "Decision: none."),
        (None, "failed", 1, "Decision: none."),
        (None, None, 1, "Decision: none yet."),
    ],
)
def test_a_review_ends_with_its_decision(review, outcome, code, said) -> None:
    """Its exit code says whether the change may be taken; of tests nothing is said."""
    run = ended(None, outcome, None)
    run = replace(run, review=review, task=replace(run.task, review=ReviewAsk(b"x")))
    assert exit_code(run) == code
    assert judged_text(run, Screen()) == said


def test_what_a_review_says_is_told_once() -> None:
    """The decision stands above it, and how the run ended says it not again."""
    review = Reviewed(True, "It came to no decision. It said: LGTM", decided=False)
    run = replace(ended(None, "answered", None), review=review, reason=review.summary)
    run = replace(run, task=replace(run.task, review=ReviewAsk(b"x")))
    shown = f"{judged_text(run, Screen())}\n\n{closing_text(run, Screen())}"
    assert shown.startswith(
        "Decision: none.\n\nReview: It came to no decision. It said: LGTM\n\nOutcome: answered.\n"
    )
    assert shown.count("LGTM") == 1
