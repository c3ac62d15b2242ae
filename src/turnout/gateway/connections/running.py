"""Running the calls that a model makes to tools of connections."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from turnout.core.clock import Clock
from turnout.core.receipts import ConnectionCall
from turnout.errors import ConnectionFailedError, ToolError
from turnout.gateway.connections.offer import Offer, Place
from turnout.gateway.connections.port import ToolConnections
from turnout.gateway.connections.weaver import Ran, arguments_of
from turnout.gateway.dialog.conversation import Call

__all__ = ["RoundBounds", "Runner"]


@dataclass(frozen=True, slots=True)
class RoundBounds:
    """How far the gateway goes on with a model by itself."""

    rounds: int = 8
    """Answers with calls that it runs before the model has to answer without."""
    calls: int = 32
    """Calls of one answer that it runs; the model reads that the others were not."""
    result_chars: int = 400_000
    """Characters of all results of one request."""


class _Outcome(NamedTuple):
    text: str
    error: str | None
    """For the receipt: what went wrong, in words of our own."""


class Runner:
    """Runs the calls of one request; what it did is on `record`."""

    def __init__(
        self,
        offer: Offer,
        connections: ToolConnections,
        clock: Clock,
        bounds: RoundBounds,
        record: list[ConnectionCall],
    ) -> None:
        self._offer = offer
        self._connections = connections
        self._clock = clock
        self._bounds = bounds
        self._record = record
        self._room = bounds.result_chars

    async def run(self, calls: Sequence[Call]) -> tuple[Ran, ...]:
        """Run calls of known functions: together where all only read, else one after the other."""
        if all(call.name in self._offer.reads for call in calls):
            return tuple(await asyncio.gather(*(self._run(i, c) for i, c in enumerate(calls))))
        return tuple([await self._run(place, call) for place, call in enumerate(calls)])

    async def _run(self, number: int, call: Call) -> Ran:
        place = self._offer.places[call.name]
        if number >= self._bounds.calls:
            outcome = _Outcome("Not run: too many calls at once.", "too many calls at once")
            took = 0
        else:
            began = self._clock.monotonic()
            try:
                outcome = await self._call(place, call)
            except asyncio.CancelledError:
                self._note(place, "the client went away", began)
                raise
            took = round((self._clock.monotonic() - began) * 1000)
        self._record.append(ConnectionCall(place.connection, place.tool, outcome.error, took))
        return Ran(call, place, self._fitted(outcome.text), is_error=outcome.error is not None)

    async def _call(self, place: Place, call: Call) -> _Outcome:
        arguments = arguments_of(call)
        if arguments is None:
            wrong = "the arguments are no JSON object"
            return _Outcome(f"Not run: {wrong}.", wrong)
        try:
            outcome = await self._connections.call(place.connection, place.tool, arguments)
        except ToolError as error:
            return _Outcome(error.message, "refused by its server")
        except ConnectionFailedError as error:
            return _Outcome(error.message, error.message)
        return _Outcome(outcome.text, "the tool reported an error" if outcome.is_error else None)

    def _note(self, place: Place, error: str, began: float) -> None:
        took = round((self._clock.monotonic() - began) * 1000)
        self._record.append(ConnectionCall(place.connection, place.tool, error, took))

    def _fitted(self, text: str) -> str:
        if len(text) > self._room:
            text = f"{text[: self._room]}\n[the rest is left out: too much was read already]"
        self._room = max(0, self._room - len(text))
        return text
