"""How many requests of one key are under way."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

from turnout.errors import GatewayError
from turnout.gateway.exchange import Caller

__all__ = ["Slots"]

_RETRY_SECONDS = 1
_FREE = nullcontext()


class Slots:
    """The requests under way in this process, by key."""

    def __init__(self) -> None:
        self._held: dict[str, int] = {}

    @property
    def held_here(self) -> Mapping[str, int]:
        """How many there are of each key that has a limit, and has any."""
        return self._held

    def held(self, caller: Caller) -> AbstractContextManager[None]:
        """Return a block that one request of the caller is under way in.

        Entering it raises `GatewayError` (429) where as many are as the key may have.
        """
        limit = caller.limits.concurrency
        return _FREE if limit is None else self._hold(caller.key, limit)

    @contextmanager
    def _hold(self, key: str, limit: int) -> Iterator[None]:
        here = self._held.get(key, 0)
        if here >= limit:
            raise GatewayError(
                f"The key has {limit} request{'s' * (limit > 1)} under way, as many as it may.",
                status=429,
                code="concurrency_limit",
                mend="Wait for one to end, or raise `concurrency` of the key.",
                retry_after=_RETRY_SECONDS,
            )
        self._held[key] = here + 1
        try:
            yield
        finally:
            if self._held[key] == 1:
                del self._held[key]
            else:
                self._held[key] -= 1
