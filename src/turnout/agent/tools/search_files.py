"""Search the files of the repository."""

from typing import Final

from turnout.agent.tools.base import Arguments, Parameter, ToolContext, ToolOutput, tool
from turnout.agent.tools.list_files import fitting

__all__ = ["SearchFiles"]

_MOST: Final = 100


class SearchFiles:
    """Lines that match a regular expression."""

    spec: Final = tool(
        "search_files",
        f"Search the files of the repository for a regular expression; at most {_MOST} lines.",
        Parameter("pattern", "Regular expression, as in Python."),
        Parameter("glob", "Only in files such as `src/**/*.py`.", required=False),
    )
    writes: Final = False

    async def call(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        """Search, and say where nothing was found."""
        pattern = arguments.text("pattern")
        glob = arguments.text("glob").strip() or "**/*"
        hits = await context.sandbox.search(pattern, glob=glob, limit=_MOST)
        if not hits:
            return ToolOutput(f"No line of `{glob}` matches `{pattern}`.")
        lines = tuple(f"{hit.path}:{hit.line}: {hit.text}" for hit in hits)
        shown = fitting(lines, context.bounds.output_cap - 100)
        more = len(shown) < len(lines) or len(hits) == _MOST
        note = ["[there may be more; search more narrowly]"] if more else []
        return ToolOutput("\n".join([*shown, *note]))
