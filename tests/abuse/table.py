"""What a row of the table is: an attempt, and what must be seen of it.

A check is text against text, so that a test can also hand it what an open wall would show.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from turnout.errors import ToolError
from turnout.sandbox.base import Command, CommandResult, Exit, Sandbox

__all__ = [
    "HERE",
    "OTHER_SECRET",
    "SECRET",
    "Attempt",
    "Place",
    "Row",
    "complaint",
    "ending",
    "outcome",
    "python",
    "reading",
    "shell",
]

SECRET = "of-the-host-alone"
OTHER_SECRET = "of-another-run-alone"
HERE = "here"
"""Folder of the workspace in which a row does its work; emptied after each."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row is tried, and what lies outside for it to reach for."""

    sandbox: Sandbox
    another: Callable[[], AbstractAsyncContextManager[Sandbox]]
    """Starts one more sandbox of the same kind."""
    outside: Path
    """A folder of the host that everybody may read and write."""
    state: Path
    """The state folder of the service."""
    variables: Mapping[str, str]
    """In the environment of every command: where things outside are."""

    async def run(self, command: str, timeout: float = 20) -> CommandResult:
        """Run a shell command in the folder of the row."""
        return await self.sandbox.run(
            Command(shell=command, cwd=HERE, env=self.variables, timeout=timeout)
        )


Attempt = Callable[[Place], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Row:
    """One attempt and how to tell that the walls held."""

    number: int
    name: str
    attempt: Attempt
    """Returns what was seen."""
    must: tuple[str, ...]
    """Expressions that each find something: the attempt was made, and refused."""
    never: tuple[str, ...]
    """Expressions of which none finds anything."""
    without: str
    """What would be seen if the wall were missing."""
    machines: tuple[str, ...] = ("x86_64", "aarch64")
    """Where it can be tried."""
    harmless: bool = False
    """It looks and touches nothing, so that it may be tried where there are no walls."""


def complaint(row: Row, seen: str) -> str:
    """Return what is wrong with what was seen; nothing where the walls held."""
    wrong = [f"missing: {p}" for p in row.must if not re.search(p, seen, re.MULTILINE)]
    wrong += [f"seen: {p}" for p in row.never if re.search(p, seen, re.MULTILINE)]
    return "; ".join(wrong)


def ending(end: Exit) -> str:
    """Return the end of a command as a line."""
    number = end.code if end.signal is None else f"signal {end.signal}"
    return f"[{end.reason} {number}]"


def outcome(result: CommandResult) -> str:
    """Return what a command printed, and its end."""
    return f"{result.stdout.decode(errors='backslashreplace')}\n{ending(result.exit)}"


def shell(command: str, *, timeout: float = 20) -> Attempt:
    """Try a shell command; what it prints on both streams is seen."""

    async def attempt(place: Place) -> str:
        return outcome(await place.run(f"exec 2>&1; {command}", timeout))

    return attempt


def python(code: str) -> Attempt:
    """Try a Python program."""

    async def attempt(place: Place) -> str:
        command = Command(("python3", "-IS", "-c", code), cwd=HERE, env=place.variables, timeout=20)
        result = await place.sandbox.run(command)
        return outcome(result) + result.stderr.decode(errors="backslashreplace")

    return attempt


async def reading(sandbox: Sandbox, *paths: str) -> str:
    """Read files by the sandbox's own interface and return what came of each."""
    lines = []
    for path in paths:
        try:
            blob = await sandbox.read(path)
        except ToolError as error:
            lines.append(f"refused {path[:40]!a}: {error}"[:200])
        else:
            lines.append(f"READ {path[:40]!a}: {blob.data[:80]!r}")
    return "\n".join(lines)
