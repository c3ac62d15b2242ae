"""The order in which candidates are drawn, from the likeliest prompt to the most insistent."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Literal

from turnout.agent.repair.grafting.matching import Target

__all__ = ["Ask", "Ladder", "Rung"]

Ask = Literal["correct", "edit", "insist", "name", "rewrite"]
"""correct: mend whatever is wrong; insist: unchanged code is rejected; name: mend one definition;
rewrite: write the body of one definition, which is not shown; edit: change a part of one that is
too long to be written anew."""


@dataclass(frozen=True, slots=True)
class Rung:
    """How one candidate is drawn; the conversation is new each time."""

    ask: Ask
    temperature: float
    seed: int
    target: Target | None = None
    """The definition that `name`, `rewrite` and `edit` are about."""


class Ladder:
    """Greedy and clean samples first; then rounds over the targets, each named and rewritten.

    What is too `long` is edited instead, and `constants` have no body to be left out. After a reply
    that repeated the code the clean samples that are left wait until the end.
    """

    def __init__(
        self,
        samples: int,
        targets: Sequence[Target],
        long: frozenset[Target] = frozenset(),
        *,
        constants: frozenset[Target] = frozenset(),
        seed: int = 0,
        greedy: bool = True,
    ) -> None:
        rungs = _rungs(targets, long, constants, seed)
        self._rungs = list(islice(rungs, 0 if greedy else 1, samples + (0 if greedy else 1)))

    def next(self, *, unchanged: bool) -> Rung | None:
        """Take the next rung, given whether the last reply repeated the code; None at the end."""
        if not self._rungs:
            return None
        other = [index for index, rung in enumerate(self._rungs) if rung.ask != "correct"]
        return self._rungs.pop(other[0] if unchanged and other else 0)


def _rungs(
    targets: Sequence[Target], long: frozenset[Target], constants: frozenset[Target], seed: int
) -> Iterator[Rung]:
    first = targets[0] if targets and targets[0] in long else None
    for number, temperature in enumerate((0.0, 0.8, 0.8)):
        ask: Ask = "correct" if first is None else "edit"
        yield Rung(ask, temperature, seed + number, first)
    for number in count():
        seed_now = seed + 3 + 2 * number
        if not targets:
            yield Rung("insist", 1.0, seed_now)
            continue
        turn, place = divmod(number, len(targets))
        target = targets[place]
        yield _about(target, long, "name", 0.8, seed_now)
        if target not in long | constants:
            yield Rung("rewrite", 0.8 if turn else 0.0, seed_now, target)
        if turn:
            continue
        if number % 2:
            yield _about(targets[0], long, "name", 1.0, seed_now + 1)
        else:
            yield Rung("insist", 1.0, seed_now)


def _about(target: Target, long: frozenset[Target], ask: Ask, heat: float, seed: int) -> Rung:
    return Rung("edit" if target in long else ask, heat, seed, target)
