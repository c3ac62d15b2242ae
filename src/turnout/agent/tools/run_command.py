"""Run a shell command, under the name that the `files` surface gives it."""

from typing import Final

from turnout.agent.tools.base import Arguments, Parameter, ToolContext, ToolOutput, tool
from turnout.agent.tools.run import DESCRIPTION, run_shell

__all__ = ["RunCommand"]


class RunCommand:
    """One bash command, its exit status and what it printed."""

    spec: Final = tool("run_command", DESCRIPTION, Parameter("command", "What bash runs."))
    writes: Final = True

    async def call(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        """Run it; a command that fails is a result, not an error of the tool."""
        return await run_shell(arguments.text("command"), context)
