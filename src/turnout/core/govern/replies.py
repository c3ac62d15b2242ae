"""Who serves a request that was sent more than once under one idempotency key."""

from typing import Literal, NamedTuple

from turnout.core.ids import RequestId

__all__ = ["Standing"]


class Standing(NamedTuple):
    """How an idempotency key stands after somebody asked for it."""

    state: Literal["claimed", "running", "kept"]
    """claimed: by whoever asked; running: somebody else serves it; kept: there is an answer."""
    digest: str
    """Of the request that the key stands for."""
    payload: str = ""
    """The answer, as JSON; empty where there is none yet."""
    lapsed: RequestId | None = None
    """Of a claim that took the place of one that had lapsed: the request that had made that."""
