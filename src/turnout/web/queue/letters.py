"""What a queue hands over, whichever server keeps it."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Inbox", "Letter", "OpenInbox", "Refused"]


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a message is no order that can be taken."""

    code: str
    """As in the body of an error of the API."""
    message: str


@dataclass(frozen=True, slots=True)
class Letter:
    """A message that stays in the queue until it was acknowledged or buried.

    Both raise `QueueError` where the server is away: then it is handed over again.
    """

    body: bytes
    key: str | None
    """Idempotency key; None where nothing tells a second delivery from another message."""
    acknowledge: Callable[[], Awaitable[None]]
    """Takes it out of the queue."""
    bury: Callable[[Refused], Awaitable[None]]
    """Takes it out of the queue, and keeps it with the reason where people look for such."""


class Inbox(Protocol):
    """An open queue."""

    async def next(self) -> Letter:
        """Wait for the next message; `QueueError` where the server has gone away."""
        ...


OpenInbox = Callable[[], AbstractAsyncContextManager[Inbox]]
"""Connects; `QueueError` where the server is away, or does not let us."""
