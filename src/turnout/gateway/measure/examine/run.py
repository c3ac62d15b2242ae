"""Asks all exercises of one deployment, within bounds of time and money."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import get_args

from turnout.core.clock import Clock
from turnout.core.money import Micros, cost_micros, format_usd
from turnout.core.usage import Usage
from turnout.gateway.dialog.conversation import Conversation
from turnout.gateway.evidence import Check, Examination
from turnout.gateway.exchange import UpstreamError
from turnout.gateway.measure.asking import Asking, Heard
from turnout.gateway.measure.examine.exercises import (
    EXERCISES,
    TIMED,
    CheckName,
    Exercise,
    wrong_with,
)

__all__ = ["ExamLimits", "Examiner"]

_FORM_REFUSED = frozenset({400, 404, 405, 422, 501})
_SPEND = Micros(250_000)
_FEWEST_TOKENS = 32
"""Of an answer whose speed is measured."""


@dataclass(frozen=True, slots=True)
class ExamLimits:
    """What one deployment's examination may take."""

    seconds: float = 900.0
    each: float = 120.0
    """Seconds for one answer."""
    spend: Micros = _SPEND
    """What all answers together may cost."""
    tokens: int = 60_000
    """The same where the price is unknown, in tokens of input and output."""
    retries: int = 2
    """Times that an answer is asked for again where the provider was not able to give it."""
    longest_wait: float = 20.0
    """Seconds between two of them."""


class _OutOfBoundsError(Exception):
    """The examination has used what it may."""


class Examiner:
    """Examines one deployment after another."""

    def __init__(
        self,
        clock: Clock,
        limits: ExamLimits | None = None,
        on_answer: Callable[[int, int], None] = lambda _done, _all: None,
    ) -> None:
        """`on_answer` is told after each answer how many of how many there are."""
        self._clock = clock
        self._limits = limits or ExamLimits()
        self._on_answer = on_answer

    async def examine(self, asking: Asking, *, tools: bool = True) -> Examination:
        """Return what the deployment did; `UpstreamError` where it gave not one answer.

        One request follows the other, so that their latencies are those of a single caller.
        Without `tools` it is only timed.
        """
        sitting = _Sitting(asking, self._clock, self._limits, self._on_answer)
        reason = ""
        try:
            async with asyncio.timeout(self._limits.seconds):
                await sitting.through(EXERCISES if tools else ())
        except TimeoutError:
            reason = f"it took longer than {self._limits.seconds:.0f} s"
        except _OutOfBoundsError as error:
            reason = str(error)
        except UpstreamError as error:
            if not sitting.answers:
                raise
            reason = error.sentence(asking.deployment.id).removesuffix(".")
        return sitting.result(self._clock, reason)


class _Sitting:
    """One deployment's answers so far."""

    def __init__(
        self,
        asking: Asking,
        clock: Clock,
        limits: ExamLimits,
        on_answer: Callable[[int, int], None],
    ) -> None:
        self.answers = 0
        self._asked = self._all = 0
        self._asking = asking
        self._clock = clock
        self._limits = limits
        self._on_answer = on_answer
        self._used: list[Usage] = []
        self._wrong: dict[CheckName, list[str]] = {}
        """An entry for each answer; empty where it was right."""
        self._first_ms: list[float] = []
        self._speeds: list[float] = []

    async def through(self, exercises: Sequence[Exercise]) -> None:
        """Ask everything once, a bit of each check first."""
        self._all = len(TIMED) + len(exercises)
        for said in TIMED:
            await self._time(said)
        for exercise in _dealt(exercises):
            await self._try(exercise)

    def result(self, clock: Clock, cut_short: str) -> Examination:
        """Return what the answers amount to."""
        checks = [
            _check(name, self._wrong[name]) for name in get_args(CheckName) if self._wrong.get(name)
        ]
        return Examination(
            at=clock.now(),
            checks=tuple(checks),
            ttft_ms_p50=_at(self._first_ms, 0.5),
            ttft_ms_p95=_at(self._first_ms, 0.95),
            tokens_per_second_p50=_at(self._speeds, 0.5),
            timed=len(self._first_ms),
            cut_short=cut_short,
        )

    async def _time(self, said: Conversation) -> None:
        heard = await self._ask(said, streamed=True)
        if isinstance(heard, str) or heard.first_ms is None:
            return
        self._first_ms.append(heard.first_ms)
        generating = heard.answer_ms - heard.first_ms
        if (
            not heard.usage.estimated
            and heard.usage.output_tokens >= _FEWEST_TOKENS
            and generating > 0
        ):
            self._speeds.append(1000 * heard.usage.output_tokens / generating)

    async def _try(self, exercise: Exercise) -> None:
        heard = await self._ask(exercise.said, streamed=exercise.streamed)
        wrong = heard if isinstance(heard, str) else wrong_with(exercise, heard)
        self._wrong.setdefault(exercise.check, []).append(wrong)

    async def _ask(self, said: Conversation, *, streamed: bool) -> Heard | str:
        """Return the answer, or why the deployment will not give it."""
        self._check_bounds()
        again = 0
        while True:
            try:
                async with asyncio.timeout(self._limits.each):
                    ask = self._asking.stream if streamed else self._asking.ask
                    heard = await ask(said)
            except TimeoutError:
                return self._done(f"did not answer within {self._limits.each:.0f} s")
            except UpstreamError as error:
                if error.status in _FORM_REFUSED:
                    return self._done(f"refused the request with status {error.status}")
                if not error.retryable or again == self._limits.retries:
                    raise
                wait = min(error.retry_after or 2.0**again, self._limits.longest_wait)
                await self._clock.sleep(wait)
                again += 1
                continue
            self._used.append(heard.usage)
            self.answers += 1
            self._done("")
            return heard

    def _done(self, wrong: str) -> str:
        self._asked += 1
        self._on_answer(self._asked, self._all)
        return wrong

    def _check_bounds(self) -> None:
        price, limits = self._asking.deployment.price, self._limits
        if price is None:
            tokens = sum(used.input_tokens + used.output_tokens for used in self._used)
            if tokens >= limits.tokens:
                raise _OutOfBoundsError(f"it used {tokens} tokens, whose price is unknown")
            return
        spent = Micros(sum(cost_micros(used, price) for used in self._used))
        most = cost_micros(Usage(1_000, self._asking.most_output), price)
        if spent + most > limits.spend:
            raise _OutOfBoundsError(
                f"it cost {format_usd(spent)}, and one more answer could pass "
                f"{format_usd(limits.spend)}"
            )


def _dealt(exercises: Sequence[Exercise]) -> list[Exercise]:
    """Return the exercises such that the first few hold one of each check."""
    by_check: dict[str, list[Exercise]] = {}
    for exercise in exercises:
        by_check.setdefault(exercise.check, []).append(exercise)
    rounds = max(map(len, by_check.values()), default=0)
    return [row[place] for place in range(rounds) for row in by_check.values() if place < len(row)]


def _check(name: CheckName, wrong: Sequence[str]) -> Check:
    reasons = [reason for reason in wrong if reason]
    return Check(name, len(wrong) - len(reasons), len(wrong), reasons[-1] if reasons else "")


def _at(values: Sequence[float], share: float) -> float | None:
    """Return the value at a share of the sorted ones, the nearest above."""
    if not values:
        return None
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1)
