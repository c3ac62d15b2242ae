"""A person's wish that a run stops: between two steps, or at once."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from turnout.core.events import ApprovalAsked

__all__ = ["ParkedError", "Stop", "StoppedError"]

T = TypeVar("T")

_NOBODY: Final = "Stopped by the user."
"""What the record says where nothing but the wish is known."""

_GRACE: Final = 10.0
"""Seconds that given-up work has for its own clean-up."""


class StoppedError(Exception):
    """The run is to stop, and what was under way was given up."""


class ParkedError(Exception):
    """Nobody works on the run for now; it goes on from its record later."""

    def __init__(self, asked: ApprovalAsked | None = None) -> None:
        super().__init__()
        self.asked = asked
        """The call that a person is to decide on first; None: it may go on at once."""


class Stop:
    """Carries the wish from whoever has it to the worker; asking again makes it urgent."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()
        self._urgent = asyncio.Event()
        self.parked = False
        """Whether the run should be left to another worker after the call under way."""
        self.why = _NOBODY
        """Whose wish it is, as the record says it."""

    @property
    def asked(self) -> bool:
        """Whether the run should stop after the step that is under way."""
        return self._asked.is_set()

    @property
    def urgent(self) -> bool:
        """Whether the step that is under way should be given up."""
        return self._urgent.is_set()

    def ask(self, why: str = _NOBODY) -> None:
        """Ask for a stop between steps; asked a second time, for one at once."""
        if self._asked.is_set():
            self._urgent.set()
        else:
            self.why = why
        self._asked.set()

    def park(self) -> None:
        """Ask that the run is left to another worker."""
        self.parked = True

    async def unless_asked(self, work: Coroutine[Any, Any, T]) -> T:
        """Do work that may be given up as soon as a stop is asked for: `StoppedError` then."""
        return await _unless(self._asked, work)

    async def unless_urgent(self, work: Coroutine[Any, Any, T]) -> T:
        """Do work that is given up only when the stop is urgent: `StoppedError` then."""
        return await _unless(self._urgent, work)


async def _unless(signal: asyncio.Event, work: Coroutine[Any, Any, T]) -> T:
    if signal.is_set():
        work.close()
        raise StoppedError
    task = asyncio.ensure_future(work)
    waiter = asyncio.ensure_future(signal.wait())
    try:
        await asyncio.wait({task, waiter}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise StoppedError
        return task.result()
    finally:
        waiter.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=_GRACE)
