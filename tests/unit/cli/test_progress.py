"""A run as it happens, line by line."""

from io import StringIO

import pytest
from rich.console import Console
from tests.unit.runs.parts import COMMIT, FAILING, NO_PATCH, PATCH, TASK
from tests.unit.runs.test_summary import STARTED, call, record

from turnout.cli.progress import LiveProgress, PlainProgress, Silence, line_of, progress_on
from turnout.core.events import (
    Event,
    Explained,
    ModelCallFailed,
    Notice,
    PatchMade,
    PlanMade,
    StepStarted,
    TestsRan,
    ToolCallIntended,
    WorkspaceReady,
)
from turnout.core.ids import ToolCallId
from turnout.core.tools import ToolCall


def tool(arguments: str) -> ToolCallIntended:
    """Return a tool call with these arguments."""
    return ToolCallIntended(1, ToolCall(ToolCallId("c"), "read_file", arguments))


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (STARTED, f"run started at {COMMIT[:12]}, strategy loop"),
        (WorkspaceReady("walls", None, (), 0.25), "workspace ready in 0.2 s (walls), no tests"),
        (Notice("Dirty.", "warning"), "warning: Dirty."),
        (Notice("Cut."), "Cut."),
        (TestsRan("before", FAILING), "tests before: 1 failed, 1 passed"),
        (PlanMade("Look.\n"), "plan:\nLook."),
        (call(1), "step 1 act: m, 0.0 s"),
        (tool('{"path": "a\\nb"}'), "  read_file a b"),
        (tool("{}"), "  read_file"),
        (tool('{"path"'), "  read_file (arguments that are no JSON)"),
        (tool("[1]"), "  read_file"),
        (tool('{"path": "' + "x" * 99 + '"}'), f"  read_file {'x' * 60}…"),
        (PatchMade(PATCH), "patch: 1 changed"),
        (PatchMade(NO_PATCH), "patch: nothing changed"),
        (Explained("shown at the end"), ""),
    ],
)
def test_an_event_is_one_line_or_none(event: Event, line: str) -> None:
    """What a person wants to follow, and no more."""
    assert line_of(event) == line


def test_plain_lines_cannot_steer_the_terminal() -> None:
    """Models and tests write them too."""
    lines: list[str] = []
    progress = PlainProgress(lines.append)
    progress.say("starting\x07")
    for entry in record(STARTED, tool('{"path": "\\u001b[2J"}'), Explained("")):
        progress.show(entry)
    progress.close()
    assert lines == [r"starting\x07", lines[1], r"  read_file \x1b[2J"]


def test_the_live_line_tells_step_model_and_cost() -> None:
    """Above it, the lines stay."""
    out = StringIO()
    progress = LiveProgress(Console(file=out, force_terminal=True, width=120, highlight=False))
    progress.say("starting the local model")
    for entry in record(STARTED, StepStarted(3, "act", "latency"), call(2_000_000), tool("{}")):
        progress.show(entry)
    progress.close()
    shown = out.getvalue()
    assert "starting the local model" in shown
    assert "step 3 act · m · $2.00" in shown
    assert "  read_file" in shown


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
