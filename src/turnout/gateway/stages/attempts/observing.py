"""What an answer shows of the deployment that gave it."""

from collections.abc import Sequence
from dataclasses import dataclass

from turnout.gateway.dialog.events import Reply
from turnout.gateway.measure.live import LiveEvidence
from turnout.gateway.repair import count_calls
from turnout.gateway.stages.trail import Trail

__all__ = ["Timing", "observe_answer"]

_SHORT = 64
"""Output tokens up to which a whole answer took about as long as its first token."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How long one deployment took."""

    first_ms: int | None
    """To the first visible piece; None where the answer came whole."""
    answer_ms: int
    """To the end of the answer."""


def observe_answer(
    evidence: LiveEvidence, trail: Trail, timing: Timing, reply: Reply, mended: Sequence[str]
) -> None:
    """Hand what was seen to the live evidence; `mended`: what was wrong with its tool calls.

    A whole answer has no first token to time: a short one stands for the wait, a long one for
    the speed. An answer with calls that had to be mended counts as one malformed call at least.
    """
    if trail.serving is None:
        return
    output = 0 if trail.usage.estimated else trail.usage.output_tokens
    ttft, generating = timing.first_ms, timing.answer_ms - (timing.first_ms or 0)
    if ttft is None and 0 < output < _SHORT:
        ttft = timing.answer_ms
    count = count_calls(reply, trail.request)
    wrong = 1 if mended and trail.request.tools else 0
    evidence.observe(
        trail.serving.id,
        ttft_ms=ttft,
        tokens_per_second=1000 * output / generating if output >= _SHORT and generating else None,
        calls=max(count.calls, wrong),
        malformed=max(count.malformed, wrong),
    )
