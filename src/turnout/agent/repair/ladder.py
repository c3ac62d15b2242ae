"""The order in which candidates are drawn, from the likeliest prompt to the most insistent."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Literal, TypeVar

from turnout.agent.repair.forking.fork import Fork
from turnout.agent.repair.grafting.excerpt import Region
from turnout.agent.repair.grafting.matching import Target
from turnout.agent.repair.suspects import Suspects

__all__ = ["Ask", "Ladder", "Rung"]

_T = TypeVar("_T")

Ask = Literal["correct", "insist", "lines", "mend", "name", "rewrite"]
"""correct: mend whatever is wrong in all that is shown; insist: the same, and unchanged code is
rejected; mend: one definition; name: the same, and unchanged code is rejected; rewrite: write the
body of one definition, which is not shown; lines: mend a statement of one that is long."""

_WHOLE, _STATEMENT = (0.0, 0.8, 0.8), (0.0, 0.8, 0.8, 1.0, 1.0)
"""Temperatures of the clean samples of all code, and of one statement: these cost little."""

_TARGETS_APART, _REGIONS_APART = 2, 1
"""How many places further down a definition, or a region of one, has to be for its first turn to
wait for the second turn of another."""


@dataclass(frozen=True, slots=True)
class Rung:
    """How one candidate is drawn; the conversation is new each time."""

    ask: Ask
    temperature: float
    seed: int
    target: Target | None = None
    """The definition that `mend`, `name`, `rewrite` and `lines` are about."""
    region: Region | None = None
    """The lines that `lines` is about."""
    fork: Fork | None = None
    """Where it goes on with a reply to the same question in another way."""


class Ladder:
    """Clean samples first, of the whole code or of a statement that failed; then turns of targets.

    Code is shown `whole` where it all fits a prompt.

    The most suspected have the earlier turns and more of them. What has `regions` is mended there
    too, and what is `long` only there; `constants` have no body to be left out. After a reply that
    repeated the code the clean samples that are left wait until the end.
    """

    def __init__(
        self,
        samples: int,
        suspects: Suspects,
        *,
        whole: bool = True,
        seed: int = 0,
        greedy: bool = True,
    ) -> None:
        self._suspects = suspects
        rungs = self._all(seed, whole=whole or not suspects.targets)
        drawn = (rung for rung in rungs if greedy or rung.temperature > 0)
        self._rungs = list(islice(drawn, samples))

    def next(self, *, unchanged: bool) -> Rung | None:
        """Take the next rung, given whether the last reply repeated the code; None at the end."""
        if not self._rungs:
            return None
        other = [index for index, rung in enumerate(self._rungs) if rung.ask != "correct"]
        return self._rungs.pop(other[0] if unchanged and other else 0)

    def _all(self, seed: int, *, whole: bool) -> Iterator[Rung]:
        first = next(iter(self._suspects.targets), None)
        broken = None if whole or first not in self._suspects.broken else first
        if whole or broken:
            region = self._suspects.regions[broken][0] if broken else None
            ask: Ask = "lines" if broken else "correct"
            for number, temperature in enumerate(_STATEMENT if broken else _WHOLE):
                yield Rung(ask, temperature, seed + number, broken, region)
        for number in count():
            seed_now = seed + len(_STATEMENT) + 2 * number
            if self._suspects.targets:
                target, turn = _turn(number, self._suspects.targets, _TARGETS_APART)
                yield self._about(target, turn + (target == broken), seed_now)
            if whole and (number % 2 or not self._suspects.targets):
                yield Rung("insist", 1.0, seed_now + 1)

    def _about(self, target: Target, turn: int, seed: int) -> Rung:
        regions = self._suspects.regions.get(target, ())
        if target not in self._suspects.long:
            half, rest = divmod(turn, 2)
            if not regions or rest:
                return self._anew(target, half if regions else turn, seed)
            turn = half
        region, again = _turn(turn, regions, _REGIONS_APART)
        return Rung("lines", 0.8 if again else 0.0, seed, target, region)

    def _anew(self, target: Target, turn: int, seed: int) -> Rung:
        if turn == 0:
            return Rung("mend", 0.0, seed, target)
        if turn % 2 == 0 and target not in self._suspects.constants:
            return Rung("rewrite", 0.8 if turn > 2 else 0.0, seed, target)
        return Rung("name", 0.8 if turn == 1 else 1.0, seed, target)


def _turn(number: int, each: Sequence[_T], apart: int) -> tuple[_T, int]:
    """Return whose turn it is, and how many turns it had before."""
    at = 0
    for cost in count():
        for turn in range(cost // apart + 1):
            place = cost - turn * apart
            if place < len(each):
                if at == number:
                    return each[place], turn
                at += 1
    raise AssertionError  # `count` does not end
