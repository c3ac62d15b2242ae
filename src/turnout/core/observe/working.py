"""Which run the code that is running now works on, for what it writes to logs."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from turnout.core.ids import RunId

__all__ = ["Working", "working", "working_on"]


@dataclass(frozen=True, slots=True)
class Working:
    """A run that is worked on."""

    run_id: RunId
    project: str
    key: str
    """Name of the key that ordered it."""


_NOW: Final[ContextVar[Working | None]] = ContextVar("turnout_working", default=None)


def working() -> Working | None:
    """Return the run that the current task, or the one that started it, works on."""
    return _NOW.get()


@contextmanager
def working_on(run: Working) -> Iterator[None]:
    """Say that the block, and all tasks that it starts, work on a run."""
    token = _NOW.set(run)
    try:
        yield
    finally:
        _NOW.reset(token)
