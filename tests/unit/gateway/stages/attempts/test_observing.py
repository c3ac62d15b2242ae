"""What an answer adds to the evidence of who gave it."""

from dataclasses import replace

import pytest

from turnout.core.ids import RequestId, ToolCallId
from turnout.core.usage import Usage
from turnout.gateway.dialog.conversation import Call, Text
from turnout.gateway.dialog.events import Reply
from turnout.gateway.evidence import Evidence
from turnout.gateway.exchange import Caller, DeclaredTool
from turnout.gateway.measure.live import LiveEvidence
from turnout.gateway.stages.attempts.observing import Timing, observe_answer
from turnout.gateway.stages.trail import Trail
from turnout.testing.clock import FrozenClock
from turnout.testing.exchange import PLAIN_REQUEST, deployment

MODEL = deployment("acme/m")
TOOLED = replace(PLAIN_REQUEST, tools=(DeclaredTool("run"),))


def observed(
    reply: Reply, timing: Timing, usage: Usage, mended: tuple[str, ...] = ()
) -> Evidence | None:
    """Return the evidence that one answer makes; None where it makes none."""
    clock = FrozenClock()
    live = LiveEvidence(clock)
    trail = Trail(RequestId("r"), Caller("k"), TOOLED, clock.now(), 0.0, "auto", serving=MODEL)
    trail.usage = usage
    observe_answer(live, trail, timing, reply, mended)
    return live.snapshot().of.get(MODEL.id)


def text(said: str = "Hello") -> Reply:
    """Return an answer in words."""
    return Reply((Text(said),), "stop")


def calls(*arguments: str) -> Reply:
    """Return an answer of calls."""
    made = tuple(Call(ToolCallId(f"c{i}"), "run", a) for i, a in enumerate(arguments))
    return Reply(made, "tool_calls")


def test_a_stream_shows_wait_and_speed() -> None:
    """The first token, then tokens by the time that followed."""
    seen = observed(text(), Timing(200, 2_200), Usage(10, 100))
    assert seen is not None
    assert (seen.ttft_ms_p50, seen.tokens_per_second_p50) == (200.0, 50.0)


def test_a_whole_answer_shows_one_or_the_other() -> None:
    """A short one took about as long as its first token; a long one has a speed."""
    short = observed(text(), Timing(None, 300), Usage(10, 5))
    long = observed(text(), Timing(None, 2_000), Usage(10, 100))
    assert short is not None
    assert long is not None
    assert (short.ttft_ms_p50, short.tokens_per_second_p50) == (300.0, None)
    assert (long.ttft_ms_p50, long.tokens_per_second_p50) == (None, 50.0)


def test_estimated_counts_time_nothing() -> None:
    """A guess of ours is no measurement."""
    assert observed(text(), Timing(None, 300), Usage(10, 100, estimated=True)) is None


@pytest.mark.parametrize(
    ("reply", "mended", "rate", "samples"),
    [
        (calls("{}", '{"a": 1}'), (), 1.0, 2),
        (calls("{}", '{"a": '), (), 0.5, 2),
        (calls("{}", "{}"), ("call id added",), 0.5, 2),
        (text("No."), ("finish reason made stop",), 0.0, 1),
        (text('<tool_call>{"name": "run"'), (), 0.0, 1),
    ],
)
def test_calls_that_were_no_use_or_were_mended_count_against_it(
    reply: Reply, mended: tuple[str, ...], rate: float, samples: int
) -> None:
    """Broken arguments, marks of a call in the text, any repair."""
    seen = observed(reply, Timing(100, 200), Usage(10, 5), mended)
    assert seen is not None
    assert (seen.tool_success, seen.tool_samples) == (rate, samples)
