"""Apply a unified diff."""

from typing import Final

from turnout.agent.tools.base import Arguments, Parameter, ToolContext, ToolOutput, tool
from turnout.agent.tools.files import read_whole, refuse_tests, workspace_path
from turnout.agent.tools.patch_place import changes, render
from turnout.agent.tools.patch_text import FilePatch, parse_patch
from turnout.errors import ToolError

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
        """Place each hunk in its file and apply the whole."""
        sections = [await _section(patch, context) for patch in parse_patch(arguments.text("diff"))]
        result = await context.sandbox.apply_patch(b"".join(sections))
        return ToolOutput(result.message, is_error=not result.applied)


async def _section(patch: FilePatch, context: ToolContext) -> bytes:
    old = None if patch.old is None else workspace_path(patch.old)
    new = None if patch.new is None else workspace_path(patch.new)
    for path in {old, new} - {None}:
        refuse_tests(path or "", context)
    patch = FilePatch(old, new, patch.hunks, patch.modes)
    try:
        data = b"" if old is None else (await read_whole(context.sandbox, old)).data
        return render(patch, changes(data, patch))
    except ToolError as error:
        raise ToolError(f"{old or new}: {error.message}", mend=error.mend) from error
