"""List one folder."""

from typing import Final

from turnout.agent.tools.base import Arguments, Parameter, ToolContext, ToolOutput, tool
from turnout.agent.tools.files import workspace_path
from turnout.agent.tools.list_files import fitting

__all__ = ["ListDirectory"]

_MOST: Final = 5_000
_NOTE: Final = 100


class ListDirectory:
    """What lies directly in a folder; folders end with a slash."""

    spec: Final = tool(
        "list_directory",
        "List a folder of the repository: its files and, with a slash, its folders.",
        Parameter(
            "path", "Folder relative to the repository; leave it out for the root.", required=False
        ),
    )
    writes: Final = False

    async def call(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        """List it."""
        folder = workspace_path(arguments.text("path").strip() or ".")
        root = folder == "."
        pattern = "**/*" if root else f"{_literal(folder)}/**/*"
        listing = await context.sandbox.list(pattern, limit=_MOST)
        if not listing.paths:
            return ToolOutput(f"`{folder}` holds no files that are not ignored, or is no folder.")
        below = "" if root else f"{folder}/"
        inside = (path.removeprefix(below) for path in listing.paths if path.startswith(below))
        names = sorted({f"{head}{sep}" for head, sep, _ in (p.partition("/") for p in inside)})
        shown = fitting(tuple(names), context.bounds.output_cap - _NOTE)
        missing = len(names) - len(shown)
        notes = [f"[{missing} more not shown]"] if missing else []
        if listing.total > len(listing.paths):
            notes.append("[there are more files than were looked at]")
        return ToolOutput("\n".join([*shown, *notes]))


def _literal(folder: str) -> str:
    """Return a glob that matches the folder, and perhaps others."""
    return "".join("?" if char in "*?[]" else char for char in folder)
