"""Run a shell command in the workspace."""

from collections.abc import Sequence
from typing import Final

from turnout.agent.tools.base import Arguments, Parameter, ToolContext, ToolOutput, tool
from turnout.agent.tools.output import printed
from turnout.core.runs import Connection
from turnout.errors import ToolError
from turnout.sandbox.base import Command, CommandResult

__all__ = ["DESCRIPTION", "Run", "run_shell"]

DESCRIPTION: Final = (
    "Run a bash command in the repository. Returns the exit status and the output. Each command "
    "starts in the repository with a fresh environment, without a terminal and without input, and "
    "reaches no host but those named with the task; files stay, variables and `cd` do not."
)

_MOST_REFUSALS: Final = 5
_HEAD: Final = 128 << 10
_TAIL: Final = 256 << 10
"""Bytes of each stream that a model may read on in."""


class Run:
    """One bash command, its exit status and what it printed."""

    spec: Final = tool("run", DESCRIPTION, Parameter("command", "What bash runs."))
    writes: Final = True

    async def call(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        """Run it; a command that fails is a result, not an error of the tool."""
        return await run_shell(arguments.text("command"), context)


async def run_shell(command: str, context: ToolContext) -> ToolOutput:
    """Run a bash command to its end, within the time that commands have."""
    if not command.strip():
        raise ToolError("The command is empty.", mend="Send a bash command.")
    timeout = context.bounds.command_timeout
    asked = len(context.sandbox.connections())
    result = await context.sandbox.run(
        Command(shell=command, timeout=timeout, head=_HEAD, tail=_TAIL)
    )
    lines = [_status(result, timeout), printed(result.stdout), printed(result.stderr)]
    said = "\n".join(filter(None, lines)) + _omitted(result)
    refused = _refusals(context.sandbox.connections()[asked:], said)
    return ToolOutput("\n".join([said, *refused]), log=True)


def _refusals(asked: Sequence[Connection], said: str) -> Sequence[str]:
    """Return why connections came to nothing, which many programs keep to themselves."""
    reasons = dict.fromkeys(each.reason for each in asked if not each.received_bytes)
    untold = [f"turnout: {reason}" for reason in reasons if reason and reason not in said]
    return untold[:_MOST_REFUSALS]


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
