"""Replace one exact snippet of a file, or write a new one."""

from typing import Final

from turnout.agent.tools.base import Arguments, Parameter, ToolContext, ToolOutput, tool
from turnout.agent.tools.closest import closest_region
from turnout.agent.tools.files import read_whole, refuse_tests, workspace_path
from turnout.agent.tools.occurrences import MOST, occurrences
from turnout.errors import ToolError

__all__ = ["EditFile", "replace_once"]

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_LISTED = 10


class EditFile:
    """An edit that says exactly what it replaces, and is refused where that is not certain."""

    spec: Final = tool(
        "edit_file",
        "Replace the one exact occurrence of `old` in a file by `new`. An empty `old` writes a "
        "new file.",
        Parameter("path", "Path relative to the repository."),
        Parameter("old", "Text to replace, copied exactly, with enough lines to be unique."),
        Parameter("new", "Text to put in its place."),
    )
    writes: Final = True

    async def call(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        """Edit or write one file."""
        path = workspace_path(arguments.text("path"))
        old, new = arguments.text("old"), arguments.text("new")
        refuse_tests(path, context)
        if not old:
            return await _write_new(path, new, context)
        blob = await read_whole(context.sandbox, path)
        edited = replace_once(blob.data, old, new)
        await context.sandbox.write(path, edited, expect_sha256=blob.sha256)
        return ToolOutput(f"Edited {path}.")


async def _write_new(path: str, text: str, context: ToolContext) -> ToolOutput:
    try:
        existing = await context.sandbox.read(path, limit=1)
    except ToolError:
        existing = None
    if existing is not None and existing.size:
        raise ToolError(
            f"`{path}` exists and is not empty, so an empty `old` would overwrite it.",
            mend="Send the text to replace as `old`.",
        )
    await context.sandbox.write(path, text.encode())
    return ToolOutput(f"Wrote {path}.")


def replace_once(data: bytes, old: str, new: str) -> bytes:
    """Return `data` with the only occurrence of `old` replaced.

    `ToolError` where there is none or more than one. Bytes outside the occurrence stay as they
    are. A line break in `old` also stands for the CRLF of the file, and then, or where every line
    ends so, line breaks of `new` become CRLF.
    """
    if data.startswith(_UTF16_MARKS):
        raise ToolError("The file is UTF-16, which cannot be edited as text.")
    if old == new:
        raise ToolError("`old` and `new` are the same.", mend="Send the changed text as `new`.")
    wanted = old.encode()
    starts = occurrences(data, wanted)
    if not starts and b"\r" not in wanted:
        wanted = wanted.replace(b"\n", b"\r\n")
        starts = occurrences(data, wanted)
    if len(starts) != 1:
        raise _not_unique(data, old, starts)
    start, end = starts[0], starts[0] + len(wanted)
    return b"".join([data[:start], _line_breaks(new, data, wanted), data[end:]])


def _line_breaks(new: str, data: bytes, replaced: bytes) -> bytes:
    text = new.encode()
    model = replaced if b"\n" in replaced else data
    crlf = model.count(b"\r\n")
    if b"\r" in text or not crlf or crlf != model.count(b"\n"):
        return text
    return text.replace(b"\n", b"\r\n")


def _not_unique(data: bytes, old: str, starts: list[int]) -> ToolError:
    if not starts:
        text = data.decode(errors="backslashreplace").replace("\r\n", "\n")
        return ToolError(
            "`old` does not occur in the file; nothing was changed.",
            mend="Copy it exactly, indentation included. " + closest_region(text, old),
        )
    lines = [data.count(b"\n", 0, start) + 1 for start in starts[:_LISTED]]
    more = ", ..." if len(starts) > _LISTED else ""
    count = len(starts) if len(starts) < MOST else f"at least {MOST}"
    return ToolError(
        f"`old` occurs {count} times (lines {', '.join(map(str, lines))}{more}); "
        "nothing was changed.",
        mend="Add lines around it until it is unique.",
    )
