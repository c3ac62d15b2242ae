"""Asks the person at the terminal about tool calls that wait for one."""

import asyncio
import os
import sys
import termios
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from typing import Final

import click

from turnout.agent.approval import Approver, Unattended
from turnout.cli.progress import Progress
from turnout.cli.terminal import safe
from turnout.cli.tool_lines import call_block
from turnout.core.events import ApprovalAsked, ApprovalGiven
from turnout.core.tools import ToolCall
from turnout.errors import UsageError

__all__ = ["ConsoleApprover", "approver_for", "question_of", "read_line"]

Ask = Callable[[str], Awaitable[str | None]]
"""Asks a question and returns the line that answers it; None at the end of input."""

_SHOWN_HEAD: Final = 6_000
_SHOWN_TAIL: Final = 2_000
_CHOICES: Final = "Allow? [y]es, [n]o and why, [a]lways under this rule: "


class ConsoleApprover:
    """Allows what the command line allows, asks about the rest, and refuses where it cannot."""

    def __init__(self, allowed: Collection[str], ask: Ask | None) -> None:
        self._by_option = frozenset(allowed)
        self._always: set[str] = set()
        self._ask = ask

    async def decide(self, asked: ApprovalAsked) -> ApprovalGiven:
        """Return what the options, an earlier `always` or the person says."""
        if asked.rule in self._by_option:
            return ApprovalGiven(asked.step, asked.call.id, True, "--approve")
        if asked.rule in self._always:
            return ApprovalGiven(asked.step, asked.call.id, True, "the user, always")
        if self._ask is None:
            return await Unattended().decide(asked)
        question = question_of(asked)
        while (answer := await self._ask(question)) is not None:
            word, _, note = answer.strip().partition(" ")
            if word.lower() in {"a", "always"}:
                self._always.add(asked.rule)
            if word.lower() in {"y", "yes", "a", "always"}:
                return ApprovalGiven(asked.step, asked.call.id, True, "the user")
            if word.lower().rstrip(",:.") in {"n", "no"}:
                return ApprovalGiven(asked.step, asked.call.id, False, "the user", note.strip())
            question = _CHOICES
        return ApprovalGiven(asked.step, asked.call.id, False, "the user", "no answer was given")


def question_of(asked: ApprovalAsked) -> str:
    """Return what the person reads: all of the call, or how much of it is not shown."""
    return f"\n{safe(_shown(asked.call))}\n{_CHOICES}"


def approver_for(
    progress: Progress, rules: Collection[str], approved: Collection[str], *, quiet: bool
) -> Approver:
    """Return what decides on the calls of `turnout run`; `UsageError` for a rule that is not set.

    Only a person at a terminal is asked, and nobody where the output is for scripts.
    """
    unknown = [rule for rule in approved if rule not in rules]
    if unknown:
        known = ", ".join(rules)
        there = f"Those that stand there are: {known}." if known else "None stands there."
        raise UsageError(
            f"There is no approval rule {unknown[0]!r}.",
            mend=f"A rule must first stand in turnout.toml, under `[agent] approvals`. {there}",
        )
    attended = not quiet and sys.stdin.isatty() and sys.stderr.isatty()

    async def ask(question: str) -> str | None:
        with progress.aside():
            click.echo(question, err=True, nl=False)
            return await read_line(sys.stdin.fileno())

    return ConsoleApprover(approved, ask if attended else None)


def _shown(call: ToolCall) -> str:
    text = call_block(call)
    left_out = len(text) - _SHOWN_HEAD - _SHOWN_TAIL
    if left_out <= 0:
        return text
    return f"{text[:_SHOWN_HEAD]}\n[{left_out} characters not shown]\n{text[-_SHOWN_TAIL:]}"


async def read_line(terminal: int) -> str | None:
    """Read a line, without a thread that could not be given up; earlier keys do not count."""
    with suppress(termios.error):
        termios.tcflush(terminal, termios.TCIFLUSH)
    loop = asyncio.get_running_loop()
    typed = bytearray()
    done: asyncio.Future[None] = loop.create_future()

    def read() -> None:
        try:
            piece = os.read(terminal, 4096)
        except OSError:
            piece = b""
        typed.extend(piece)
        if not done.done() and (not piece or b"\n" in piece):
            done.set_result(None)

    loop.add_reader(terminal, read)
    try:
        await done
    finally:
        loop.remove_reader(terminal)
    return typed.decode(errors="replace") if typed else None
