"""Run a shell command in the workspace."""

from typing import Final

from turnout.agent.tools.base import Arguments, Parameter, ToolContext, ToolOutput, tool
from turnout.agent.tools.output import printed
from turnout.errors import ToolError
from turnout.sandbox.base import Command, CommandResult

__all__ = ["Run"]


class Run:
    """One bash command, its exit status and what it printed."""

    spec: Final = tool(
        "run",
        "Run a bash command in the repository. Returns the exit status and the output. Each "
        "command starts in the repository with a fresh environment, without a terminal, without "
        "input and without network; files stay, variables and `cd` do not.",
        Parameter("command", "What bash runs."),
    )
    writes: Final = True

    async def call(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        """Run it; a command that fails is a result, not an error of the tool."""
        command = arguments.text("command")
        if not command.strip():
            raise ToolError("The command is empty.", mend="Send a bash command.")
        timeout = context.config.command_timeout
        result = await context.sandbox.run(Command(shell=command, timeout=timeout))
        lines = [_status(result, timeout), printed(result.stdout), printed(result.stderr)]
        return ToolOutput("\n".join(filter(None, lines)) + _omitted(result), log=True)


def _omitted(result: CommandResult) -> str:
    dropped = result.exit.stdout_omitted + result.exit.stderr_omitted
    return f"\n[{dropped} bytes from the middle of the output were not kept]" if dropped else ""


def _status(result: CommandResult, timeout: float) -> str:
    end = result.exit
    match end.reason:
        case "exited":
            return f"exit {end.code}" if end.signal is None else f"ended by signal {end.signal}"
        case "timeout":
            return (
                f"timed out after {timeout:g} s and was ended; start what must go on in the "
                "background and send input through a pipe"
            )
        case "output_limit":
            return "ended: it printed too much; send the output to a file and read parts of it"
        case "oom":
            return "ended: it used too much memory"
        case "not_started":
            return f"could not be started: {end.error}"
        case "cancelled" | "sandbox_died":
            return "was ended before it was done"
