"""The order in which candidates are drawn, from the likeliest prompt to the most insistent."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Literal

from turnout.agent.repair.grafting.matching import Target

__all__ = ["Ask", "Ladder", "Rung"]

Ask = Literal["correct", "insist", "name", "rewrite"]
"""correct: mend whatever is wrong; insist: unchanged code is rejected; name: mend one definition;
rewrite: write the body of one definition, which is not shown."""


@dataclass(frozen=True, slots=True)
class Rung:
    """How one candidate is drawn; the conversation is new each time."""

    ask: Ask
    temperature: float
    seed: int
    target: Target | None = None
    """The definition that `name` and `rewrite` are about."""


class Ladder:
    """Greedy and clean samples first; then a round for each target, the first one in all of them.

    After a reply that repeated the code the clean samples that are left wait until the end.
    """

    def __init__(self, samples: int, targets: Sequence[Target]) -> None:
        self._rungs = list(islice(_rungs(targets), samples))

    def next(self, *, unchanged: bool) -> Rung | None:
        """Take the next rung, given whether the last reply repeated the code; None at the end."""
        if not self._rungs:
            return None
        other = [index for index, rung in enumerate(self._rungs) if rung.ask != "correct"]
        return self._rungs.pop(other[0] if unchanged and other else 0)


def _rungs(targets: Sequence[Target]) -> Iterator[Rung]:
    yield Rung("correct", 0.0, 0)
    yield Rung("correct", 0.8, 1)
    yield Rung("correct", 0.8, 2)
    for number in count():
        seed = 3 + 2 * number
        if not targets:
            yield Rung("insist", 1.0, seed)
            continue
        turn, place = divmod(number, len(targets))
        yield Rung("name", 0.8, seed, targets[place])
        yield Rung("insist", 1.0, seed)
        yield Rung("name", 1.0, seed + 1, targets[0])
        yield Rung("rewrite", 0.8 if turn else 0.0, seed, targets[place])
