"""Why an answer ended, in the words of the messages shape and in ours."""

from collections.abc import Mapping

from turnout.core.inference import FinishReason

__all__ = ["agreed_reason", "finish_of", "stop_reason"]

_FINISHES: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "stop",
    "refusal": "content_filter",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
}
_REASONS: Mapping[FinishReason, str] = {
    "content_filter": "refusal",
    "length": "max_tokens",
    "stop": "end_turn",
    "tool_calls": "tool_use",
}
_OUTWEIGHS_CALLS = frozenset(
    {"max_tokens", "model_context_window_exceeded", "pause_turn", "refusal", "tool_use"}
)


def agreed_reason(reason: str, *, called: bool) -> str:
    """Return the stop reason of an answer, made to agree with whether it holds calls."""
    if called:
        return reason if reason in _OUTWEIGHS_CALLS else "tool_use"
    return "end_turn" if reason == "tool_use" else reason


def finish_of(reason: str) -> FinishReason:
    """Return what a stop reason means; one that we do not know ends like any other answer."""
    return _FINISHES.get(reason, "stop")


def stop_reason(finish: FinishReason, *, called: bool, stop_sequence: str | None) -> str:
    """Return why an answer of another shape ended."""
    if finish == "stop" and not called and stop_sequence is not None:
        return "stop_sequence"
    return agreed_reason(_REASONS[finish], called=called)
