"""Write a whole file."""

from typing import Final

from turnout.agent.tools.base import Arguments, Parameter, ToolContext, ToolOutput, tool
from turnout.agent.tools.files import workspace_path, write_text

__all__ = ["WriteFile"]


class WriteFile:
    """A file that afterwards holds exactly what was sent; an existing one keeps its mode."""

    spec: Final = tool(
        "write_file",
        "Write a whole file of the repository, a new one or in place of an existing one. Folders "
        "are made.",
        Parameter("path", "Path relative to the repository."),
        Parameter("content", "All of the file."),
    )
    writes: Final = True

    async def call(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        """Write it."""
        path = workspace_path(arguments.text("path"))
        content = arguments.text("content")
        await write_text(path, content, context)
        return ToolOutput(f"Wrote {path} ({len(content.encode())} bytes).")
