"""When the loop ends, and when the model is told to go on: rules over the record.

Each rule looks at the state of a loop after a step and either has nothing to say, ends the loop, or
gives the model a nudge. They are asked in order; the first that speaks decides.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from turnout.agent.base import AgentConfig
from turnout.agent.loop.calls import OUT_OF_TIME, time_is_over
from turnout.agent.loop.state import LoopState, Turn, cut, own_steps
from turnout.agent.tools.arguments import unfenced
from turnout.agent.tools.bounds import bounds_of
from turnout.agent.tools.surfaces import Surface
from turnout.core.events import LoopEnded, ModelCallFailed
from turnout.core.json import as_object, as_text
from turnout.core.money import Micros, format_usd
from turnout.core.tools import function_name

__all__ = ["Nudge", "Situation", "call_failure", "is_conflict", "judge", "over_caps"]

_NUDGES = 2
_OR_SAY = "If nothing is left to do, say so in plain text."
_CALL_LINE = re.compile(
    r"^[ \t]*(?:<tool_call>|<function=|<function_call>|\[TOOL_CALLS\]|<\|tool_call)", re.MULTILINE
)
_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Nudge:
    """What the loop says in the user's place so that the model goes on."""

    text: str
    tool: str = ""
    """The one tool that the next step carries; empty: an ordinary step."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What the rules look at."""

    state: LoopState
    config: AgentConfig
    seconds: float
    """Wall time of the loop so far."""

    @property
    def surface(self) -> Surface:
        """The tools at hand."""
        return self.state.surface


Rule = Callable[[Situation], LoopEnded | Nudge | None]


_BY_POLICY: Final = frozenset({"tool_not_allowed", "price_unknown"})
"""Codes of refusals that hold for every call of a run."""


def judge(state: LoopState, config: AgentConfig, seconds: float) -> LoopEnded | Nudge | None:
    """Say what follows after a step; None: the next step, with nothing to add."""
    situation = Situation(state, config, seconds)
    for rule in _RULES:
        if (said := rule(situation)) is not None:
            return said
    return None


def call_failure(failed: ModelCallFailed) -> LoopEnded:
    """Return the end that a failed model call of a plan or act step means."""
    if failed.status == 403 and failed.code in _BY_POLICY:
        return LoopEnded("refused", failed.error)
    if failed.status in {402, 429} or failed.code == OUT_OF_TIME:
        return LoopEnded("capped", failed.error)
    status = "" if failed.status is None else f" with status {failed.status}"
    return LoopEnded("failed", f"A model call failed{status}: {failed.error}")


def is_conflict(failed: ModelCallFailed) -> bool:
    """Whether a call that was sent again after a crash is not the one that was sent before.

    Settings may have changed in between; it is then made anew, as a step of its own.
    """
    return failed.status == 409 and failed.code == "idempotency_conflict"


def over_caps(config: AgentConfig, spent: Micros, seconds: float) -> LoopEnded | None:
    """Return the end of a run that has spent or taken what it may; None while it has not."""
    most = config.max_spend
    if most is not None and spent >= most:
        why = f"The run has spent {format_usd(spent)} of its {format_usd(most)}."
        return LoopEnded("capped", f"{why} Raise `max_spend_usd` for more.")
    if config.max_seconds is not None and seconds >= config.max_seconds:
        return LoopEnded("capped", time_is_over(config))
    return None


def _failed_call(now: Situation) -> LoopEnded | None:
    failed = now.state.failed
    return None if failed is None or is_conflict(failed) else call_failure(failed)


def _finished(now: Situation) -> LoopEnded | None:
    for result in now.state.turn.results if now.state.turn else ():
        if result.ends_run:
            return LoopEnded("answered", "The model called finish.", result.content)
    return None


def _tool_step(now: Situation) -> Nudge | None:
    """Give a tool its own step where the model has said in plain text that it is ready.

    Of several the text names one; where it does not, it is asked, once.
    """
    state, turn = now.state, now.state.turn
    tools = own_steps(state, now.config)
    if not tools or turn is None or not 0 < state.idle <= min(len(tools), _NUDGES):
        return None
    text = _spoken(turn.reply.message.content)
    if not text or cut(turn.reply) or turn.reply.message.tool_calls:
        return None
    named = [tool for tool in tools if re.search(rf"\b{re.escape(function_name(tool))}\b", text)]
    if named:
        # An account of what was done names the newest call beside the one to come.
        return _call_now(min(named, key=lambda tool: tool == state.last_called))
    if state.idle > 1 or state.last_called in tools:
        return None
    if len(tools) == 1:
        return _call_now(tools[0])
    return Nudge(f"Name what you call next, of {', '.join(map(function_name, tools))}. {_OR_SAY}")


def _call_now(tool: str) -> Nudge:
    return Nudge(f"Now call {function_name(tool)}. {_OR_SAY}", tool)


def _answered(now: Situation) -> LoopEnded | None:
    turn = now.state.turn
    if not now.surface.text_ends or turn is None:
        return None
    message = turn.reply.message
    text = _spoken(message.content)
    if not text or message.tool_calls or cut(turn.reply) or _is_written_call(text, now.surface):
        return None
    if _tool_step(now) is not None:
        return None
    return LoopEnded("answered", "The model said that it was done.", text)


def _idle(now: Situation) -> LoopEnded | Nudge | None:
    idle, turn = now.state.idle, now.state.turn
    if idle > _NUDGES:
        return LoopEnded("failed", f"The model gave nothing to act on {idle} times in a row.")
    # The results of a cut reply's calls say what to do.
    if not idle or turn is None or turn.reply.message.tool_calls:
        return None
    return Nudge(_idle_nudge(turn, now.surface))


def _idle_nudge(turn: Turn, surface: Surface) -> str:
    ending = "answer in plain text" if surface.text_ends else "call finish"
    if why := cut(turn.reply):
        return f"Your reply was cut off {why}. Be brief: call a tool or {ending}."
    if _is_written_call(turn.reply.message.content, surface):
        return "You wrote a tool call as text; nothing was run. Make it a real tool call."
    return f"Go on with a tool call or, if the task is done, {ending}."


def _repeating(now: Situation) -> LoopEnded | Nudge | None:
    steps, turn = now.state.repeats.steps, now.state.turn
    if not steps or turn is None or steps[-1] != turn.reply.step:
        return None
    if len(steps) > 1:
        return LoopEnded("stuck", "The model repeats calls whose results do not change.")
    return Nudge(
        "The same calls have come to the same results several times. Doing it again will not "
        "help: try something else."
    )


def _out_of_steps(now: Situation) -> LoopEnded | None:
    most = bounds_of(now.surface.name, now.config).steps
    if now.state.act_steps >= most:
        steps = "1 step" if most == 1 else f"{most} steps"
        return LoopEnded("step_limit", f"The limit of {steps} was reached.")
    if now.state.tool_calls >= now.config.max_tool_calls:
        calls = now.config.max_tool_calls
        return LoopEnded("step_limit", f"The limit of {calls} tool calls was reached.")
    return None


def _capped(now: Situation) -> LoopEnded | None:
    return over_caps(now.config, now.state.spend, now.seconds)


def _spoken(text: str) -> str:
    """Return what a reply says to its reader: thoughts between tags are not part of it."""
    return _THOUGHT.sub("", text).strip()


def _is_written_call(text: str, surface: Surface) -> bool:
    """Whether a text makes a call in some model's own notation; prose may quote one."""
    if _CALL_LINE.search(_FENCED.sub("", text)):
        return True
    fences = _FENCED.findall(text)
    at_end = bool(fences) and text.rstrip().endswith(fences[-1])
    try:
        written = as_object(json.loads(unfenced(fences[-1] if at_end else text)))
    except (ValueError, RecursionError):
        return False
    return surface.find(as_text(written.get("name"))) is not None


_RULES: tuple[Rule, ...] = (
    _failed_call,
    _finished,
    _answered,
    _out_of_steps,
    _capped,
    _tool_step,
    _idle,
    _repeating,
)
