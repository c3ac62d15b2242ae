"""Say that the work is done."""

from typing import Final

from turnout.agent.tools.base import Arguments, Parameter, ToolContext, ToolOutput, tool

__all__ = ["Finish"]


class Finish:
    """The model's word that it is done; the verdict is ours."""

    spec: Final = tool(
        "finish",
        "End the task. Call it alone, when the tests pass.",
        Parameter("summary", "What was wrong and what was changed, in a few sentences."),
    )
    writes: Final = True

    async def call(self, arguments: Arguments, _context: ToolContext) -> ToolOutput:
        """End the run."""
        return ToolOutput(arguments.text("summary").strip() or "Done.", ends_run=True)
