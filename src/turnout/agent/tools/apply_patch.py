"""Apply a unified diff."""

from typing import Final

from turnout.agent.tools.base import Arguments, Parameter, ToolContext, ToolOutput, tool
from turnout.agent.tools.patch_files import make_edits, plan_edits
from turnout.agent.tools.patch_text import parse_patch

__all__ = ["ApplyPatch"]


class ApplyPatch:
    """A patch that is applied whole, where its old lines are, or refused whole."""

    spec: Final = tool(
        "apply_patch",
        "Apply a unified diff to the repository, all of it or nothing. Unchanged lines around a "
        "change must be copied exactly; line numbers need not be right.",
        Parameter("diff", "The diff, with `--- a/PATH` and `+++ b/PATH` lines."),
    )
    writes: Final = True

    async def call(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        """Find what becomes of each file, then write them."""
        edits = await plan_edits(parse_patch(arguments.text("diff")), context)
        await make_edits(context.sandbox, edits)
        notes = "".join(f"\n{edit.path}:{edit.note}" for edit in edits if edit.note)
        return ToolOutput(f"Changed {', '.join(edit.path for edit in edits)}.{notes}")
