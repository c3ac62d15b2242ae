"""Going on from a summary where the conversation has come near the end of the model's window."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Final

from turnout.agent.base import AgentConfig
from turnout.agent.context import condensing
from turnout.agent.loop.calls import Ask, step_with_call
from turnout.agent.loop.state import CONDENSING, LoopState, cut
from turnout.agent.loop.steps import Bench, begun_of, first_number
from turnout.agent.tools.output import cap
from turnout.core.events import Event, HistoryCondensed, LoopEnded, ModelCallDone, ModelCallFailed
from turnout.core.messages import AssistantMessage, Message
from turnout.core.tools import function_name

__all__ = ["condense", "is_overflow", "is_tight"]

_OVERFLOW: Final = ("context_length_exceeded", "context_window_exceeded", "prompt_too_long")
_OVERFLOW_WORDS: Final = ("context length", "context window", "context size", "prompt is too long")

_KEPT_TURNS: Final = 2
_TRIES: Final = 2
"""Condensations without a reply in between: a window that these do not fit in fits nothing."""

_FEWEST_STEPS: Final = 3
"""Act steps between two condensations that no refusal asked for."""

_EFFECTS: Final = (
    "These calls were made; what they changed stands, so do not repeat them. Before you repeat one "
    "marked [perhaps], look whether it was done:"
)
_CHARS_PER_TOKEN: Final = 3
_FEW_TOKENS: Final = 4
"""Characters of a token where it is not to be overrated: what servers count may be wrong."""
_LONGEST_MESSAGE: Final = 2_000
_LONGEST_SUMMARY: Final = 6_000
_SUMMARY_TOKENS: Final = 1_200


def is_overflow(failed: ModelCallFailed | None) -> bool:
    """Whether a model refused a call because the conversation is too long for it."""
    match failed:
        case ModelCallFailed(status=413):
            return True
        case ModelCallFailed(status=400, code=code, error=error):
            return code in _OVERFLOW or any(words in error.lower() for words in _OVERFLOW_WORDS)
        case _:
            return False


def is_tight(state: LoopState, config: AgentConfig) -> bool:
    """Whether the next call would use more of the model's window than it should."""
    turn = state.turn
    if turn is None or state.act_steps < state.condensed_at + _FEWEST_STEPS:
        return False
    usage = turn.reply.usage
    results = sum(len(result.content) for result in turn.results)
    told = usage.input_tokens + usage.output_tokens + results // _CHARS_PER_TOKEN
    used = max(told, sum(len(message.content) for message in state.messages) // _FEW_TOKENS)
    window = turn.reply.routing.context_tokens or config.window
    return used > config.condense_at * window and state.history.condensable(_KEPT_TURNS) is not None


async def condense(bench: Bench, state: LoopState) -> AsyncIterator[Event]:
    """Summarise all but the newest turns; the last event is `HistoryCondensed` or the loop's end.

    What has changed something is listed by us, whether a model summarises the rest or not.
    """
    tried = state.condensed_in_a_row
    part = state.history.condensable(_KEPT_TURNS if tried == 0 else 0) or state.history.condensable(
        0
    )
    if part is None or tried >= _TRIES:
        yield LoopEnded(
            "failed",
            "The conversation does not fit into the model's window, even condensed. "
            "Give a model with a larger one, or lower `output_cap`.",
        )
        return
    messages, through = part
    if state.condensed is None:
        async for event in _summarise(bench, state, messages):
            yield event
    reply, summary = state.condensed, ""
    if isinstance(reply, ModelCallDone) and not cut(reply):
        summary = cap(reply.message.content.strip(), _LONGEST_SUMMARY).text
    text = _standing_for(summary, state.effects.text())
    yield HistoryCondensed(state.role.conversation, through, text)


async def _summarise(
    bench: Bench, state: LoopState, messages: Sequence[Message]
) -> AsyncIterator[Event]:
    config, number, turn = bench.context.config, first_number(state, "summary"), state.turn
    window = (turn.reply.routing.context_tokens if turn else None) or config.window
    ask = Ask(
        bench.context.brief.run_id,
        number,
        "summary",
        f"{CONDENSING}{number}",
        condensing(cap(_told(messages), window * _CHARS_PER_TOKEN // 2).text),
        settings=replace(config.steps["summary"], max_tokens=_SUMMARY_TOKENS),
        begun=begun_of(state, "summary"),
        seconds=bench.seconds_left,
    )
    async for event in step_with_call(bench.client, config, ask):
        yield event


def _told(messages: Sequence[Message]) -> str:
    return "\n\n".join(_tell(message) for message in messages)


def _tell(message: Message) -> str:
    said = cap(message.content, _LONGEST_MESSAGE).text
    if not isinstance(message, AssistantMessage):
        return f"{message.role}: {said}"
    calls = [
        f"{function_name(call.name)} {cap(call.arguments, _LONGEST_MESSAGE).text}"
        for call in message.tool_calls
    ]
    return "\n".join([f"assistant: {said}", *calls])


def _standing_for(summary: str, effects: str) -> str:
    parts = ["[What was said before is condensed.]"]
    if summary:
        parts.append(summary)
    if effects:
        parts.append(f"{_EFFECTS}\n{effects}")
    return "\n\n".join(parts)
