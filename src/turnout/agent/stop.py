"""When the loop ends, and when the model is told to go on: rules over the record.

Each rule looks at the events of a run after a step and either has nothing to say, ends the loop,
or gives the model a nudge. They are asked in order; the first that speaks decides.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from turnout.agent.base import AgentConfig
from turnout.agent.history import Turn, act_steps, cut, turns
from turnout.agent.tools.arguments import unfenced
from turnout.agent.tools.surfaces import Surface
from turnout.core.events import Event, LoopEnded, ModelCallFailed
from turnout.core.json import as_object, as_text

__all__ = ["Nudge", "Situation", "call_failure", "judge"]

_NUDGES = 2
_REPEATS = 3
_CAP_CODES = ("session_", "key_")
_CALL_MARK = re.compile(r"<tool_call>|<function=|\[TOOL_CALLS\]|<\|tool_call")


@dataclass(frozen=True, slots=True)
class Nudge:
    """What the loop says in the user's place so that the model goes on."""

    text: str


@dataclass(frozen=True, slots=True)
class Situation:
    """What the rules look at."""

    surface: Surface
    config: AgentConfig
    events: Sequence[Event]
    turns: tuple[Turn, ...]


Rule = Callable[[Situation], LoopEnded | Nudge | None]


def judge(
    surface: Surface, config: AgentConfig, events: Sequence[Event]
) -> LoopEnded | Nudge | None:
    """Say what follows from the record; None: the next step, with nothing to add."""
    situation = Situation(surface, config, events, turns(events))
    for rule in _RULES:
        if (said := rule(situation)) is not None:
            return said
    return None


def call_failure(failed: ModelCallFailed) -> LoopEnded:
    """Return the end that a failed model call of a plan or act step means."""
    if failed.status == 403 and failed.code == "tool_not_allowed":
        return LoopEnded("refused", failed.error)
    if failed.status == 402 or (failed.status == 429 and failed.code.startswith(_CAP_CODES)):
        return LoopEnded("capped", failed.error)
    status = "" if failed.status is None else f" with status {failed.status}"
    return LoopEnded("failed", f"A model call failed{status}: {failed.error}")


def _failed_call(now: Situation) -> LoopEnded | None:
    last = now.events[-1] if now.events else None
    return call_failure(last) if isinstance(last, ModelCallFailed) else None


def _finished(now: Situation) -> LoopEnded | None:
    for result in now.turns[-1].results if now.turns else ():
        if result.ends_run:
            return LoopEnded("answered", "The model called finish.", result.content)
    return None


def _answered(now: Situation) -> LoopEnded | None:
    if not now.surface.text_ends or not now.turns:
        return None
    turn = now.turns[-1]
    message = turn.reply.message
    text = message.content.strip()
    if not text or message.tool_calls or cut(turn.reply) or _is_written_call(text, now.surface):
        return None
    return LoopEnded("answered", "The model said that it was done.", text)


def _idle(now: Situation) -> LoopEnded | Nudge | None:
    idle = 0
    for turn in reversed(now.turns):
        if turn.reply.message.tool_calls and not cut(turn.reply):
            break
        idle += 1
    if idle > _NUDGES:
        return LoopEnded("failed", f"The model gave nothing to act on {idle} times in a row.")
    # The results of a cut reply's calls say what to do.
    if not idle or now.turns[-1].reply.message.tool_calls:
        return None
    return Nudge(_idle_nudge(now.turns[-1], now.surface))


def _idle_nudge(turn: Turn, surface: Surface) -> str:
    ending = "answer in plain text" if surface.text_ends else "call finish"
    if why := cut(turn.reply):
        return f"Your reply was cut off {why}. Be brief: call a tool or {ending}."
    if _is_written_call(turn.reply.message.content.strip(), surface):
        return "You wrote a tool call as text; nothing was run. Make it a real tool call."
    return f"Go on with a tool call or, if the task is done, {ending}."


def _repeating(now: Situation) -> LoopEnded | Nudge | None:
    repeats = _repeats(now)
    if not repeats or repeats[-1] != len(now.turns) - 1:
        return None
    if len(repeats) > 1:
        return LoopEnded("stuck", "The model repeats calls whose results do not change.")
    return Nudge(
        f"You have made the same call {_REPEATS} times with the same result. Doing it again will "
        "not help: try something else."
    )


def _repeats(now: Situation) -> list[int]:
    """Return the turns that repeated a call for at least the third time with nothing changed.

    A call that may write and was not made before counts as a change.
    """
    counts: dict[tuple[str, str, str], int] = {}
    made: set[tuple[str, str]] = set()
    repeats: list[int] = []
    for at, turn in enumerate(now.turns):
        for call, result in zip(turn.reply.message.tool_calls, turn.results, strict=False):
            tool = now.surface.find(call.name)
            ask = (call.name, call.arguments)
            if tool is not None and tool.writes and not result.is_error and ask not in made:
                counts.clear()
            made.add(ask)
            seen = (*ask, result.content)
            counts[seen] = counts.get(seen, 0) + 1
            if counts[seen] >= _REPEATS and at not in repeats:
                repeats.append(at)
    return repeats


def _out_of_steps(now: Situation) -> LoopEnded | None:
    if act_steps(now.events) < now.config.max_steps:
        return None
    most = now.config.max_steps
    steps = "1 step" if most == 1 else f"{most} steps"
    return LoopEnded("step_limit", f"The limit of {steps} was reached.")


def _is_written_call(text: str, surface: Surface) -> bool:
    if _CALL_MARK.match(text):
        return True
    try:
        written = as_object(json.loads(unfenced(text)))
    except (ValueError, RecursionError):
        return False
    return surface.find(as_text(written.get("name"))) is not None


_RULES: tuple[Rule, ...] = (
    _failed_call,
    _finished,
    _answered,
    _out_of_steps,
    _idle,
    _repeating,
)
