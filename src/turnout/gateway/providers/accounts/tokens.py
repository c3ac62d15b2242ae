"""Bearer tokens that are fetched, and fetched again before they expire."""

import asyncio
from typing import Final, NamedTuple, Protocol

from turnout.core.clock import Clock
from turnout.gateway.exchange import UpstreamError

__all__ = ["Token", "TokenError", "TokenSource", "Tokens"]

_EARLY: Final = 300.0
"""Seconds before its end at which a token is replaced."""
_RESTING: Final = 10.0
"""Seconds after a failure in which a token that is still good is used as it is."""


class TokenError(Exception):
    """No token was given; the text says why and holds no secret."""


class Token(NamedTuple):
    """A token, and for how long it is good."""

    value: str
    seconds: float

    def __repr__(self) -> str:
        return f"Token(seconds={self.seconds})"


class TokenSource(Protocol):
    """Whoever gives tokens."""

    async def fetch(self) -> Token:
        """Return a fresh token; `TokenError` where none is given."""
        ...


class Tokens:
    """The token of one account; safe for any number of callers."""

    def __init__(self, source: TokenSource, clock: Clock) -> None:
        self._source = source
        self._clock = clock
        self._fetching = asyncio.Lock()
        self._value = ""
        self._renew_at = 0.0
        self._ends_at = 0.0

    async def value(self) -> str:
        """Return a token that is good for some minutes; `UpstreamError` (401) where there is none.

        Where a new one is not given, the old one serves until its end.
        """
        if self._clock.monotonic() < self._renew_at:
            return self._value
        async with self._fetching:
            now = self._clock.monotonic()
            if now < self._renew_at:
                return self._value
            try:
                token = await self._source.fetch()
            except TokenError as error:
                if now >= self._ends_at:
                    raise UpstreamError(f"gave no access: {error}", status=401) from error
                self._renew_at = min(now + _RESTING, self._ends_at)
                return self._value
            self._value, self._ends_at = token.value, now + token.seconds
            self._renew_at = now + max(token.seconds - _EARLY, token.seconds / 2)
            return self._value
