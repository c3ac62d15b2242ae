"""Read a file, a page at a time."""

from dataclasses import dataclass
from typing import Final

from turnout.agent.tools.base import Arguments, Parameter, ToolContext, ToolOutput, tool
from turnout.agent.tools.files import read_whole, workspace_path
from turnout.agent.tools.texts import decoded, readable
from turnout.errors import ToolError

__all__ = ["Page", "ReadFile", "page"]

_NOTE = 200


class ReadFile:
    """A file's text from some line on, as much as fits, with the way to go on."""

    spec: Final = tool(
        "read_file",
        "Read a text file of the repository. A long file comes in pages.",
        Parameter("path", "Path relative to the repository."),
        Parameter("offset", "Line to start from, counted from 1.", "integer", required=False),
        Parameter(
            "column",
            "Character of that line to start from, counted from 1; only for very long lines.",
            "integer",
            required=False,
        ),
    )
    writes: Final = False

    async def call(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        """Read one page."""
        named = arguments.text("path").strip()
        if (kept := context.output(named)) is not None:
            return ToolOutput(_page(kept, arguments, context), page=True)
        path = workspace_path(named)
        blob = await read_whole(context.sandbox, path)
        if not blob.data:
            return ToolOutput(f"[{path} is empty]")
        text = decoded(blob.data).text
        if "\0" in text:
            raise ToolError(f"`{path}` is no text file: {blob.size} bytes with NUL among them.")
        return ToolOutput(_page(readable(text), arguments, context), page=True)


def _page(text: str, arguments: Arguments, context: ToolContext) -> str:
    shown = page(
        text,
        max(1, arguments.number("offset", 1)),
        max(1, arguments.number("column", 1)),
        max(_NOTE, context.bounds.read_cap - _NOTE),
    )
    return f"{shown.text}{shown.note}"


@dataclass(frozen=True, slots=True)
class Page:
    """A piece of a file."""

    text: str
    note: str
    """How to go on; empty where the file ends here."""


def page(text: str, line: int, column: int, room: int) -> Page:
    """Return at most `room` characters from a line and column on, whole lines where they fit."""
    # Only \n ends a line, as in diffs and tracebacks; splitlines() knows others.
    lines = text.split("\n")
    last = len(lines) - (lines[-1] == "")
    if line > last:
        raise ToolError(f"The file has {last} lines, so there is no line {line}.")
    first = lines[line - 1][column - 1 :]
    if len(first) > room:
        end = column + room
        note = f"[line {line} goes on; read it with offset={line} column={end}]"
        return Page(first[:room], f"\n{note}")
    taken, used = [first], len(first)
    for following in lines[line:]:
        if used + 1 + len(following) > room:
            break
        taken.append(following)
        used += 1 + len(following)
    reached = line + len(taken) - 1
    if reached >= last:
        return Page("\n".join(taken), "")
    note = f"[lines {line} to {reached} of {last}; read on with offset={reached + 1}]"
    return Page("\n".join(taken), f"\n{note}")
