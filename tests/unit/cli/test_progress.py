"""A run as it happens, line by line."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console
from tests.unit.runs.parts import COMMIT, FAILING, NO_PATCH, PATCH, TASK
from tests.unit.runs.test_summary import STARTED, call, record

from turnout.cli.progress import LiveProgress, PlainProgress, Silence, Story, progress_on
from turnout.core.events import (
    ApprovalAsked,
    ApprovalGiven,
    AttemptChosen,
    AttemptStarted,
    Event,
    Explained,
    HistoryCondensed,
    LoopEnded,
    ModelCallFailed,
    Notice,
    PatchMade,
    PlanMade,
    PlanUpdated,
    Reviewed,
    ReviewNote,
    RunResumed,
    StepStarted,
    TestsRan,
    ToolCallDone,
    ToolCallIntended,
    WorkspaceReady,
)
from turnout.core.ids import ToolCallId
from turnout.core.tools import ToolCall, ToolResult


def tool(arguments: str) -> ToolCallIntended:
    """Return a tool call with these arguments."""
    return ToolCallIntended(1, ToolCall(ToolCallId("c"), "read_file", arguments))


def done(content: str = "text", *, is_error: bool = False) -> ToolCallDone:
    """Return the result of that tool call."""
    return ToolCallDone(1, ToolResult(ToolCallId("c"), content, is_error), 0.1)


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (STARTED, f"run started at {COMMIT[:12]}, strategy loop"),
        (replace(STARTED, base_commit=""), "the run could not begin"),
        (RunResumed(2, "vm-1"), "taken up again by vm-1, segment 2"),
        (WorkspaceReady("walls", None, (), 0.25), "workspace ready in 0.2 s (walls), no tests"),
        (Notice("Dirty.", "warning"), "warning: Dirty."),
        (Notice("Cut."), "Cut."),
        (TestsRan("before", FAILING), "tests before: 1 failed, 1 passed"),
        (PlanMade("Look.\n"), "plan:\nLook."),
        (call(1), "step 1 act: m, 0.0 s"),
        (
            replace(call(1), routing=replace(call(1).routing, connection_calls=("mcp:a/b",))),
            "step 1 act: m, 0.0 s, ran mcp:a/b",
        ),
        (tool("{}"), ""),
        (PatchMade(PATCH), "patch: 1 changed"),
        (PatchMade(NO_PATCH), "patch: nothing changed"),
        (Explained("shown at the end"), ""),
        (PlanUpdated(("done", "under_way", "open")), "plan: item 2 of 3, 1 done"),
        (HistoryCondensed("main", 7, "x"), "the conversation up to step 7 was condensed"),
        (AttemptStarted(2, 3, "quality"), "attempt 2 of at most 3, for quality"),
        (AttemptChosen(2, "Good."), "attempt 2 is the result: Good."),
        (
            ApprovalAsked(1, ToolCall(ToolCallId("c"), "run", '{"command": "make"}'), "run"),
            "run make waits for approval (rule run)",
        ),
        (ApprovalGiven(1, ToolCallId("c"), False, "ann", "no"), "refused by ann: no"),
        (ApprovalGiven(1, ToolCallId("c"), True, "ann"), "allowed by ann"),
        (
            Reviewed(True, "Bad.", (ReviewNote("a.py", 3, "Wrong.", True),)),
            "Review, which blocks the change: Bad.\n  a.py:3 error: Wrong.",
        ),
    ],
)
def test_an_event_is_one_line_or_none(event: Event, line: str) -> None:
    """What a person wants to follow, and no more."""
    assert "".join(told.text for told in Story().lines(event)) == line


def test_a_call_and_its_result_are_one_line() -> None:
    """An error does not look like a success."""
    story = Story()
    assert story.lines(tool('{"path": "a.py"}')) == []
    assert story.under_way == "read_file a.py"
    (line,) = story.lines(done())
    assert (line.text, line.style, story.under_way) == ("  read_file a.py ✓", "", "")
    story.lines(tool('{"path": "b.py"}'))
    (line,) = story.lines(done("No such file.\nLook.", is_error=True))
    assert (line.text, line.style) == ("  read_file b.py ✗ No such file.", "red")


def test_a_call_without_a_result_is_told_at_the_end() -> None:
    """It shows what was going on when a run was stopped."""
    story = Story()
    story.lines(tool('{"path": "a.py"}'))
    (line,) = story.lines(LoopEnded("cancelled", "Stopped."))
    assert line.text == "  read_file a.py (no result)"
    assert story.rest() == []


def test_plain_lines_cannot_steer_the_terminal() -> None:
    """Models and tests write them too."""
    lines: list[str] = []
    progress = PlainProgress(lines.append)
    progress.say("starting\x07")
    for entry in record(STARTED, tool('{"path": "\\u001b[2J"}'), done(), Explained("")):
        progress.show(entry)
    progress.close()
    assert lines == [r"starting\x07", lines[1], r"  read_file \x1b[2J ✓"]


def test_the_live_line_tells_step_model_and_cost() -> None:
    """Above it, the lines stay."""
    out = StringIO()
    progress = LiveProgress(Console(file=out, force_terminal=True, width=120, highlight=False))
    progress.say("starting the local model")
    step = StepStarted(3, "act", "latency")
    for entry in record(STARTED, step, call(2_000_000), tool("{}"), done()):
        progress.show(entry)
    progress.close()
    shown = out.getvalue()
    assert "starting the local model" in shown
    assert "step 3 act · m · $2.00" in shown
    assert "  read_file" in shown


def test_no_cost_is_shown_before_one_is_known() -> None:
    """Nothing looks free before it was paid for."""
    out = StringIO()
    progress = LiveProgress(Console(file=out, force_terminal=True, width=120, highlight=False))
    for entry in record(STARTED, StepStarted(1, "act", "latency"), tool("{}")):
        progress.show(entry)
    progress.close()
    assert "step 1 act · read_file" in out.getvalue()
    assert "$" not in out.getvalue()


def test_the_live_line_leaves_the_screen_to_something_else_and_comes_back() -> None:
    """What is printed meanwhile stays whole."""
    out = StringIO()
    progress = LiveProgress(Console(file=out, force_terminal=True, width=120, highlight=False))
    with progress.aside():
        before = len(out.getvalue())
        out.write("the diff\n")
        meanwhile = out.getvalue()[before:]
    progress.say("explaining")
    progress.close()
    assert meanwhile == "the diff\n"
    assert "explaining" in out.getvalue()


def test_markup_in_hostile_text_stays_text() -> None:
    """Square brackets are no colours and no links."""
    out = StringIO()
    progress = LiveProgress(Console(file=out, force_terminal=True, width=120, highlight=False))
    failed = ModelCallFailed(1, "act", "main", "k", 500, "c", "[link=file:///x]here[/link]")
    for entry in record(STARTED, failed):
        progress.show(entry)
    progress.close()
    assert "[link=file:///x]here[/link]" in out.getvalue()


def test_a_pipe_gets_plain_lines() -> None:
    """Nothing is redrawn where nobody looks."""
    out = StringIO()
    progress = progress_on(out, colour=True)
    progress.show(record(STARTED)[0])
    assert out.getvalue().endswith("strategy loop\n")
    assert "\x1b" not in out.getvalue()


def test_silence_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    """As --json promises."""
    silence = Silence()
    silence.say(TASK.prompt)
    silence.show(record(STARTED)[0])
    silence.close()
    assert capsys.readouterr() == ("", "")
