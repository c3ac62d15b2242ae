"""What runs took so far, for a list of them."""

from dataclasses import dataclass
from typing import NamedTuple

from turnout.core.ids import ModelId
from turnout.core.money import Micros

__all__ = ["ModelShare", "RunFigures"]

_NOTHING = Micros(0)


class ModelShare(NamedTuple):
    """How many calls of a run one model answered."""

    model: ModelId
    calls: int


@dataclass(frozen=True, slots=True)
class RunFigures:
    """A run's steps by its record, and its calls by the gateway's receipts."""

    steps: int = 0
    models: tuple[ModelShare, ...] = ()
    """Most calls first."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Micros = _NOTHING
    """Sum of the costs that are known."""
    unpriced: int = 0
    """Calls of which the cost is not known."""
