"""Replace one exact snippet of a file, or write a new one."""

from typing import Final

from turnout.agent.tools.base import Arguments, Parameter, ToolContext, ToolOutput, tool
from turnout.agent.tools.files import read_whole, refuse_tests, workspace_path, write_text
from turnout.agent.tools.replacing import replace_all, replace_once
from turnout.agent.tools.rewriting import note
from turnout.errors import ToolError

__all__ = ["EditFile"]


class EditFile:
    """An edit that says exactly what it replaces, and is refused where that is not certain."""

    spec: Final = tool(
        "edit_file",
        "Replace the one exact occurrence of `old` in a file by `new`. An empty `old` writes a "
        "new file.",
        Parameter("path", "Path relative to the repository."),
        Parameter("old", "Text to replace, copied exactly, with enough lines to be unique."),
        Parameter("new", "Text to put in its place."),
        Parameter(
            "count",
            "How many occurrences there are, all to be replaced; 1 if left out.",
            "integer",
            required=False,
        ),
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
        count = max(1, arguments.number("count", 1))
        if count == 1:
            edited = replace_once(blob.data, old, new)
        else:
            edited = replace_all(blob.data, old, new, count)
        await context.sandbox.write(path, edited.data, expect_sha256=blob.sha256)
        times = "" if count == 1 else f" in {count} places"
        return ToolOutput(f"Edited {path}{times}.{note(edited.likeness)}")


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
    await write_text(path, text, context)
    return ToolOutput(f"Wrote {path}.")
