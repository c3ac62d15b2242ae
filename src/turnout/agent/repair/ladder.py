"""The order in which candidates are drawn, from the likeliest prompt to the most insistent."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Literal

from turnout.agent.repair.grafting.excerpt import Region
from turnout.agent.repair.grafting.matching import Target

__all__ = ["Ask", "Ladder", "Rung"]

Ask = Literal["correct", "insist", "lines", "mend", "name", "rewrite"]
"""correct: mend whatever is wrong in all that is shown; insist: the same, and unchanged code is
rejected; mend: one definition; name: the same, and unchanged code is rejected; rewrite: write the
body of one definition, which is not shown; lines: mend some lines of one that is long."""

_AGAIN = 2
"""How many places further down a definition has to be for its first turn to wait for the second
turn of another."""


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


class Ladder:
    """Clean samples first where all code can be `whole` in a prompt; then turns of the targets.

    The most suspected have the earlier turns and more of them. What is long is mended in its
    `regions`, and `constants` have no body to be left out. After a reply that repeated the code the
    clean samples that are left wait until the end.
    """

    def __init__(
        self,
        samples: int,
        targets: Sequence[Target],
        regions: Mapping[Target, Sequence[Region]] | None = None,
        *,
        constants: frozenset[Target] = frozenset(),
        whole: bool = True,
        seed: int = 0,
        greedy: bool = True,
    ) -> None:
        rungs = _rungs(targets, regions or {}, constants, seed, whole=whole)
        drawn = (rung for rung in rungs if greedy or rung.temperature > 0)
        self._rungs = list(islice(drawn, samples))

    def next(self, *, unchanged: bool) -> Rung | None:
        """Take the next rung, given whether the last reply repeated the code; None at the end."""
        if not self._rungs:
            return None
        other = [index for index, rung in enumerate(self._rungs) if rung.ask != "correct"]
        return self._rungs.pop(other[0] if unchanged and other else 0)


def _rungs(
    targets: Sequence[Target],
    regions: Mapping[Target, Sequence[Region]],
    constants: frozenset[Target],
    seed: int,
    *,
    whole: bool,
) -> Iterator[Rung]:
    if whole or not targets:
        for number, temperature in enumerate((0.0, 0.8, 0.8)):
            yield Rung("correct", temperature, seed + number)
    for number in count():
        seed_now = seed + 3 + 2 * number
        if not targets:
            yield Rung("insist", 1.0, seed_now)
            continue
        target, turn = _turn(number, targets)
        yield _about(target, turn, regions.get(target, ()), seed_now, body=target not in constants)
        if whole and number % 2:
            yield Rung("insist", 1.0, seed_now + 1)


def _turn(number: int, targets: Sequence[Target]) -> tuple[Target, int]:
    """Return whose turn it is, and how many turns it had before."""
    at = 0
    for cost in count():
        for turn in range(cost // _AGAIN + 1):
            place = cost - turn * _AGAIN
            if place < len(targets):
                if at == number:
                    return targets[place], turn
                at += 1
    raise AssertionError  # `count` does not end


def _about(target: Target, turn: int, regions: Sequence[Region], seed: int, *, body: bool) -> Rung:
    if regions:
        again, place = divmod(turn, len(regions))
        return Rung("lines", 0.8 if again else 0.0, seed, target, regions[place])
    if turn == 0:
        return Rung("mend", 0.0, seed, target)
    if turn % 2 == 0 and body:
        return Rung("rewrite", 0.8 if turn > 2 else 0.0, seed, target)
    return Rung("name", 0.8 if turn == 1 else 1.0, seed, target)
