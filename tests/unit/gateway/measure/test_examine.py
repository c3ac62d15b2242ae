"""An examination finds out how well a deployment calls tools, within its bounds."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.knowing import exercise_of, knowing, last_said

from turnout.core.clock import Clock, SystemClock
from turnout.core.ids import ProviderName
from turnout.core.json import as_object
from turnout.core.money import Micros, Price
from turnout.gateway.catalog import Deployment, Provider
from turnout.gateway.evidence import Examination
from turnout.gateway.exchange import UpstreamError
from turnout.gateway.measure.asking import Asking
from turnout.gateway.measure.examine import Examiner, ExamLimits
from turnout.gateway.measure.examine.exercises import EXERCISES, TIMED
from turnout.gateway.providers.http import HttpUpstream
from turnout.gateway.wire.chat import ChatShape
from turnout.testing.clock import FrozenClock
from turnout.testing.exchange import deployment
from turnout.testing.model_server import (
    Answer,
    Call,
    RecordedRequest,
    Refusal,
    ScriptedModelServer,
    Turn,
)

MODEL = replace(deployment("acme/m"), price=Price(100_000, 400_000))
ALL = len(EXERCISES) + len(TIMED)


async def examined(
    answer: Callable[[RecordedRequest], Answer],
    limits: ExamLimits | None = None,
    model: Deployment = MODEL,
    clock: Clock | None = None,
) -> tuple[Examination, list[int]]:
    """Examine a server that answers so; return the result and the progress."""
    progress: list[int] = []
    clock = clock or SystemClock()
    async with (
        ScriptedModelServer(answer, answers_probes=False) as server,
        HttpUpstream(clock) as upstream,
    ):
        provider = Provider(ProviderName("acme"), server.base_url)
        asking = Asking(upstream, ChatShape(), provider, model, clock)
        examiner = Examiner(clock, limits, lambda done, _: progress.append(done))
        return await examiner.examine(asking), progress


def rates(result: Examination) -> dict[str, tuple[int, int]]:
    """Return passed and tried of every check."""
    return {check.name: (check.passed, check.tried) for check in result.checks}


def test_at_least_twenty_exercises_cover_every_skill() -> None:
    """Well-formed, right tool, exact arguments, parallel, after a result, and none."""
    kinds = Counter(exercise.check for exercise in EXERCISES)
    assert sum(kinds.values()) >= 20
    assert min(kinds.values()) >= 3
    assert len(kinds) == 6
    texts = "".join(str(exercise.wanted) for exercise in EXERCISES)
    for needed in ("\\n", '"', "東", "🚀", "[", "{'name'"):
        assert needed in texts
    assert len({last_said(exercise) for exercise in EXERCISES}) == len(EXERCISES)


async def test_a_model_that_knows_it_all_passes_and_is_timed() -> None:
    """Every check at its full count, first tokens and speed measured."""
    result, progress = await examined(knowing)
    assert (result.passed, result.tried) == (len(EXERCISES), len(EXERCISES))
    assert result.cut_short == ""
    assert result.timed == len(TIMED)
    assert result.ttft_ms_p50 is not None
    assert result.ttft_ms_p95 is not None
    assert 0 < result.ttft_ms_p50 <= result.ttft_ms_p95
    assert progress == list(range(1, ALL + 1))


async def test_each_weakness_shows_in_its_own_check() -> None:
    """One call where several were asked for, a tool where none is needed, escapes lost."""

    def weak(request: RecordedRequest) -> Turn:
        turn, exercise = knowing(request), exercise_of(request)
        match exercise.check if exercise else "":
            case "parallel calls":
                return replace(turn, calls=turn.calls[:1])
            case "no call":
                return Turn(calls=(Call("search_text", {"query": "?"}),))
            case "right tool":
                return Turn(calls=(Call("write_file", {"path": "x", "content": "y"}),))
            case "exact arguments":
                call = turn.calls[0]
                content = as_object(call.arguments).get("content")
                return turn if content is None else Turn(calls=(Call(call.name, '{"content'),))
        return turn

    result, _ = await examined(weak)
    assert rates(result) == {
        "call": (4, 4),
        "right tool": (0, 4),
        "exact arguments": (1, 4),
        "parallel calls": (0, 3),
        "after a result": (3, 3),
        "no call": (0, 4),
    }
    details = {check.name: check.detail for check in result.checks}
    assert details["no call"] == "called search_text where nothing was to be called"
    assert details["right tool"] == "called write_file"
    assert details["call"] == ""


async def test_calls_that_have_to_be_mended_are_not_passed() -> None:
    """The gateway can read them from the text; the deployment did not make them."""
    textual = replace(MODEL, calls_in_text=True)
    result, _ = await examined(
        lambda request: replace(knowing(request), fault="call_in_text"), model=textual
    )
    passed = {name for name, (right, _) in rates(result).items() if right}
    assert passed == {"no call"}
    assert "calls read from the text" in result.checks[0].detail


async def test_a_server_that_refuses_some_requests_fails_those() -> None:
    """The rest is still asked."""

    def picky(request: RecordedRequest) -> Answer:
        exercise = exercise_of(request)
        if exercise is not None and exercise.check == "after a result":
            return Refusal(400, "tool messages are not supported")
        return knowing(request)

    result, _ = await examined(picky)
    assert rates(result)["after a result"] == (0, 3)
    assert result.passed == len(EXERCISES) - 3


async def test_money_is_a_bound() -> None:
    """What was measured until then is the result, with the reason why it is not all."""
    dear = replace(MODEL, price=Price(100_000_000, 1_000_000_000))
    result, progress = await examined(knowing, ExamLimits(spend=Micros(500_000)), dear)
    assert 0 < len(progress) < ALL
    assert result.cut_short.startswith("it cost $")
    free, _ = await examined(
        knowing, ExamLimits(spend=Micros(0)), replace(MODEL, price=Price(0, 0))
    )
    assert free.cut_short == ""


async def test_tokens_are_a_bound_where_the_price_is_unknown() -> None:
    """Such a model may cost anything."""
    result, progress = await examined(knowing, ExamLimits(tokens=1_000), replace(MODEL, price=None))
    assert len(progress) == 9
    assert result.cut_short == "it used 1080 tokens, whose price is unknown"


async def test_time_is_a_bound() -> None:
    """In all, and for a single answer."""

    def asleep(request: RecordedRequest) -> Turn:
        return replace(knowing(request), delay=0.0 if len(request.messages) == 1 else 30.0)

    late, _ = await examined(lambda r: replace(knowing(r), delay=30.0), ExamLimits(seconds=0.2))
    assert late.cut_short == "it took longer than 0 s"
    slow, _ = await examined(asleep, ExamLimits(each=0.2))
    assert rates(slow)["after a result"] == (0, 3)
    assert slow.passed == len(EXERCISES) - 3


async def test_an_overload_is_waited_out() -> None:
    """A rate limit says nothing about tools."""
    refused: list[str] = []
    clock = FrozenClock()

    def busy(request: RecordedRequest) -> Answer:
        if len(refused) < 2:
            refused.append(request.model)
            return Refusal(429, headers={"retry-after": "3"})
        return knowing(request)

    result, _ = await examined(busy, clock=clock)
    assert result.passed == len(EXERCISES)
    assert clock.slept == [3.0, 3.0]


@pytest.mark.faults
async def test_a_server_that_goes_away_in_the_middle_leaves_what_was_seen() -> None:
    """And one that was never there leaves an error."""
    count: list[int] = []

    def leaving(request: RecordedRequest) -> Answer:
        count.append(1)
        return knowing(request) if len(count) < 12 else Refusal(503)

    result, progress = await examined(leaving, clock=FrozenClock())
    assert len(progress) == 11
    assert "acme/m answered 503" in result.cut_short
    with pytest.raises(UpstreamError):
        await examined(lambda _: Refusal(401), clock=FrozenClock())
