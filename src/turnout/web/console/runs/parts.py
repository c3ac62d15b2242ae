"""What the pages of runs work with."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field

from turnout.core.clock import Clock, SystemClock
from turnout.core.ids import RequestId, RunId
from turnout.core.receipts import Receipt
from turnout.core.service.figures import RunFigures
from turnout.core.service.orders import OrderedRun
from turnout.web.console.runs.keeping import Stories
from turnout.web.console.visits import Visit
from turnout.web.runs.callers import Scope
from turnout.web.runs.intake import RunParts

__all__ = ["RunPages", "scope_of"]

_FiguresOf = Callable[[Collection[OrderedRun]], Awaitable[Mapping[RunId, RunFigures]]]


async def _no_receipt(run: OrderedRun, request_id: RequestId) -> Receipt | None:
    """Know of none."""
    del run, request_id
    return None


async def _none_repaired(run: OrderedRun) -> Mapping[RequestId, int]:
    """Know of none."""
    del run
    return {}


@dataclass(frozen=True, slots=True)
class RunPages:
    """What the API's routes work with, and what pages show beside it."""

    runs: RunParts
    figures: _FiguresOf
    receipt: Callable[[OrderedRun, RequestId], Awaitable[Receipt | None]] = _no_receipt
    """Returns the receipt of a run's model call; None where there is none."""
    repaired: Callable[[OrderedRun], Awaitable[Mapping[RequestId, int]]] = _none_repaired
    """Returns how often the gateway mended the answers to a run's calls, where it did."""
    stories: Stories = field(default_factory=Stories)
    clock: Clock = field(default_factory=SystemClock)


def scope_of(visit: Visit) -> Scope:
    """Return whose runs a visit is about."""
    return Scope(visit.caller, visit.project)
