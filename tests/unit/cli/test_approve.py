"""The person at the terminal is asked about tool calls."""

import asyncio
import json
import os
import pty

import pytest

from turnout.cli.progress import Silence
from turnout.cli.run.approve import ConsoleApprover, approver_for, question_of, read_line
from turnout.core.events import ApprovalAsked
from turnout.core.ids import ToolCallId
from turnout.core.tools import ToolCall
from turnout.errors import UsageError

CALL = ToolCall(ToolCallId("c"), "run", json.dumps({"command": "make\nmake install"}))
ASKED = ApprovalAsked(3, CALL, "run")


class Terminal:
    """Answers with lines, then with the end of input."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.questions: list[str] = []

    async def __call__(self, question: str) -> str | None:
        """Return the next line."""
        self.questions.append(question)
        return self.lines.pop(0) if self.lines else None


@pytest.mark.parametrize(
    ("lines", "allowed", "note"),
    [
        (["y\n"], True, ""),
        (["YES\n"], True, ""),
        (["n\n"], False, ""),
        (["no, never install\n"], False, "never install"),
        (["what?\n", "\n", "y\n"], True, ""),
        ([], False, "no answer was given"),
        (["maybe\n"], False, "no answer was given"),
    ],
)
async def test_a_line_decides(lines: list[str], note: str, *, allowed: bool) -> None:
    """Only a clear yes allows; a line that is neither is asked for again."""
    given = await ConsoleApprover((), Terminal(*lines)).decide(ASKED)
    assert (given.allowed, given.note, given.by) == (allowed, note, "the user")


async def test_always_holds_for_the_rule_and_no_other() -> None:
    """The next call under it is not asked about."""
    terminal = Terminal("a\n", "n\n")
    approver = ConsoleApprover((), terminal)
    other = ApprovalAsked(4, CALL, "run:make*")
    decided = [(await approver.decide(each)).allowed for each in (ASKED, ASKED, other)]
    assert decided == [True, True, False]
    assert len(terminal.questions) == 2


async def test_what_the_command_line_allows_is_not_asked_about() -> None:
    """Whoever wrote it has decided."""
    terminal = Terminal()
    given = await ConsoleApprover(("run",), terminal).decide(ASKED)
    assert (given.allowed, given.by, terminal.questions) == (True, "--approve", [])


async def test_without_a_terminal_a_call_is_refused() -> None:
    """With the option that would have allowed it."""
    given = await ConsoleApprover((), None).decide(ASKED)
    assert not given.allowed
    assert "--approve 'run'" in given.note


def test_a_rule_that_is_not_set_cannot_be_approved() -> None:
    """A spelling mistake would otherwise have the run refuse what was meant to be allowed."""
    with pytest.raises(UsageError, match="runs"):
        approver_for(Silence(), ("run",), ("runs",), quiet=True)


def test_the_question_shows_the_whole_call_and_steers_no_terminal() -> None:
    """Of a very long one it says how much is hidden."""
    assert "make install" in question_of(ASKED)
    long = ToolCall(CALL.id, "run", json.dumps({"command": f"\x1b[2J{'x' * 20_000}; rm -rf ~"}))
    shown = question_of(ApprovalAsked(3, long, "run"))
    assert "\x1b" not in shown
    assert "characters not shown" in shown
    assert "rm -rf ~" in shown


async def test_a_line_is_read_from_a_terminal_and_keys_from_before_do_not_count() -> None:
    """An impatient return must not allow what nobody has read."""
    ours, theirs = pty.openpty()
    try:
        os.write(ours, b"y\n")
        reading = asyncio.create_task(read_line(theirs))
        await asyncio.sleep(0)
        os.write(ours, b"n\n")
        assert await asyncio.wait_for(reading, 5) == "n\n"
    finally:
        os.close(ours)
        os.close(theirs)


async def test_a_question_can_be_given_up() -> None:
    """Ctrl-C ends the run while nobody has answered; the terminal is left alone."""
    ours, theirs = pty.openpty()
    try:
        reading = asyncio.create_task(read_line(theirs))
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert asyncio.get_running_loop().remove_reader(theirs) is False
    finally:
        os.close(ours)
        os.close(theirs)
