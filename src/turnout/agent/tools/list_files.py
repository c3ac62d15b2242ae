"""List the files of the repository."""

from typing import Final

from turnout.agent.tools.base import Arguments, Parameter, ToolContext, ToolOutput, tool

__all__ = ["ListFiles", "fitting"]

_MOST = 200
_EVERYTHING = "**/*"


class ListFiles:
    """Names of files that match a glob."""

    spec: Final = tool(
        "list_files",
        f"List files of the repository, at most {_MOST}. Ignored files are left out.",
        Parameter(
            "pattern",
            "Glob such as `src/**/*.py`; leave it out for all files.",
            required=False,
        ),
    )
    writes: Final = False

    async def call(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        """List what matches, and say how much more there is."""
        pattern = arguments.text("pattern").strip() or _EVERYTHING
        listing = await context.sandbox.list(pattern, limit=_MOST)
        if not listing.paths:
            return ToolOutput(f"No file matches the glob `{pattern}`. Try `{_EVERYTHING}`.")
        names = fitting(listing.paths, context.bounds.output_cap - 100)
        missing = listing.total - len(names)
        more = [f"[{missing} more files match; send a narrower pattern]"] if missing > 0 else []
        return ToolOutput("\n".join([*names, *more]))


def fitting(names: tuple[str, ...], room: int) -> tuple[str, ...]:
    """Return the first names that fit into `room` characters, one a line."""
    used = 0
    for at, name in enumerate(names):
        used += len(name) + 1
        if used > room:
            return names[:at]
    return names
