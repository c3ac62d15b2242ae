"""Carry out the tool calls of a reply: each gets exactly one result, in order."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from turnout.agent.loop.state import cut
from turnout.agent.tools.arguments import did_you_mean, quoted, read_arguments
from turnout.agent.tools.base import AgentTool, ToolContext, ToolOutput
from turnout.agent.tools.surfaces import Surface
from turnout.core.clock import Clock
from turnout.core.events import ModelCallDone
from turnout.core.tools import ToolCall, function_name
from turnout.errors import SandboxError, ToolError

__all__ = ["Carried", "batches", "carry_out", "refusal", "runnable"]

_MOST_CALLS = 32
_GRACE = 30.0


@dataclass(frozen=True, slots=True)
class Carried:
    """A call that was carried out or refused."""

    call: ToolCall
    output: ToolOutput
    seconds: float


def runnable(reply: ModelCallDone) -> tuple[ToolCall, ...]:
    """Return the calls of a reply that may be carried out: none of a reply that was cut."""
    return () if cut(reply) else reply.message.tool_calls[:_MOST_CALLS]


def refusal(reply: ModelCallDone, *, ended: bool) -> ToolOutput:
    """Say why a call of this reply is not carried out."""
    why = f"one reply may make at most {_MOST_CALLS} calls. Send it again."
    if ended:
        why = "an earlier call of the same reply has ended the task."
    elif how := cut(reply):
        why = (
            f"your reply was cut off {how}, so this call may be incomplete. Send it again with "
            "less in it, or in several smaller calls."
        )
    return ToolOutput(f"Not run: {why}", is_error=True)


def batches(surface: Surface, calls: Sequence[ToolCall]) -> Iterator[tuple[ToolCall, ...]]:
    """Divide calls into those that run at the same time: neighbours that only read."""
    for _, group in groupby(enumerate(calls), lambda item: _place(surface, *item)):
        yield tuple(call for _at, call in group)


async def carry_out(
    batch: Sequence[ToolCall], surface: Surface, context: ToolContext, clock: Clock
) -> tuple[Carried, ...]:
    """Carry out a batch at the same time; results are in the order of the calls.

    Whatever a tool does wrong becomes an output. `SandboxError` comes out when all have ended.
    """
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_carry_out(call, surface, context, clock)) for call in batch]
    done = [task.result() for task in tasks]
    for one in done:
        if isinstance(one, SandboxError):
            raise one
    return tuple(one for one in done if isinstance(one, Carried))


async def _carry_out(
    call: ToolCall, surface: Surface, context: ToolContext, clock: Clock
) -> Carried | SandboxError:
    started = clock.monotonic()
    # Tools bound their own work; this holds if one does not.
    limit = max(context.bounds.command_timeout, context.bounds.test_timeout) + _GRACE
    writes = False
    try:
        tool = _find(surface, call)
        arguments, writes = read_arguments(tool.spec, call.arguments), tool.writes
        async with asyncio.timeout(limit):
            output = await tool.call(arguments, context)
    except ToolError as error:
        output = ToolOutput(str(error), is_error=True)
    except TimeoutError:
        late = f"{function_name(call.name)} did not end within {limit:g} s."
        output = ToolOutput(late, is_error=True, unsure=writes)
    except SandboxError as error:
        return error
    return Carried(call, output, clock.monotonic() - started)


def _find(surface: Surface, call: ToolCall) -> AgentTool:
    tool = surface.find(call.name)
    if tool is not None:
        return tool
    names = [function_name(spec.name) for spec in surface.specs]
    raise ToolError(
        f"There is no tool called `{quoted(call.name)}`.{did_you_mean(call.name, names)}",
        mend=f"The tools are {', '.join(names)}.",
    )


def _place(surface: Surface, at: int, call: ToolCall) -> int:
    tool = surface.find(call.name)
    return -1 if tool is not None and not tool.writes else at
