"""Whose key opens the console: those of the store, the one that is shared, or none at all."""

import hmac
from dataclasses import dataclass
from typing import Final

from turnout.errors import GatewayError
from turnout.gateway.access import open_access, shared_key
from turnout.gateway.exchange import Caller
from turnout.gateway.keys.ring import KeyRing, digest_of

__all__ = ["KeyHolders"]

_NOBODY: Final = ""
"""What is known of somebody who needs no key."""


@dataclass(frozen=True, slots=True)
class KeyHolders:
    """Knows the holders of keys, as the API does."""

    ring: KeyRing
    shared: str = ""
    """A key beside those of the store; empty: there is none."""
    private: bool = False
    """Whether only this machine reaches the service."""

    @property
    def keyless(self) -> bool:
        """Whether programs of this machine come in without a key: there never was any."""
        return self.private and not self.shared and self.ring.empty

    def enter(self, key: str, host: str) -> tuple[str, Caller]:
        """Return what a key is known by, and its holder; `GatewayError` (401, 403) for no key."""
        digest = digest_of(key) if key else _NOBODY
        return digest, self.again(digest, host)

    def again(self, digest: str, host: str) -> Caller:
        """Return the holder of a key by what it is known by; `GatewayError` (401) if it is shut."""
        if digest == _NOBODY:
            return self._without_key(host)
        if self.shared and hmac.compare_digest(digest.encode(), digest_of(self.shared).encode()):
            return shared_key(self.shared)({"authorization": f"Bearer {self.shared}"})
        return self.ring.known_by(digest)

    def _without_key(self, host: str) -> Caller:
        if self.keyless:
            return open_access()({"host": host})
        raise GatewayError(
            "A key is needed here.", status=401, code="invalid_api_key", mend="Type yours."
        )
