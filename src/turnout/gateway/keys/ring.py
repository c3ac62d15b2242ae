"""Who may call: the holders of our keys."""

import asyncio
import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Self

from turnout.core.clock import Clock
from turnout.core.govern.keys import KeyRecord
from turnout.errors import GatewayError, StoreError
from turnout.gateway.access import Authenticate, sent_key
from turnout.gateway.exchange import Caller
from turnout.gateway.ports import KeyStore

__all__ = ["KeyRing", "digest_of", "no_key"]

_EVERY = 0.5
"""Seconds between looks at the store: what another process changes counts within one."""
_SEND_ONE = "Send a valid one as `Authorization: Bearer KEY`."
_KNOWN = "`turnout keys list` shows which there are."
_MAKE_ONE = "Make another with `turnout keys create NAME --role member`, and name that."


def no_key(name: str) -> GatewayError:
    """Return the refusal of work that is to be charged to a key which is not there."""
    mend = f"Make it with `turnout keys create {name} --role member`."
    return _refused(f"There is no key {name!r}.", "invalid_api_key", mend)


def digest_of(key: str) -> str:
    """Return what a key is known by; a key holds so much chance that it takes no salt."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class _Held:
    caller: Caller
    expires_at: datetime | None
    revoked: bool


class KeyRing:
    """Tells callers by their key from a view of the store that is at most a second old.

    `async with ring` loads the view and keeps it fresh until the block ends.
    """

    def __init__(
        self,
        store: KeyStore,
        clock: Clock,
        *,
        shared: Authenticate | None = None,
        keyless: Authenticate | None = None,
    ) -> None:
        """Ask `shared` about keys that are not ours, `keyless` while there never was any."""
        self._store = store
        self._clock = clock
        self._shared = shared
        self._keyless = keyless
        self._revision = -1
        self._held: Mapping[str, _Held] = {}
        self._refreshing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.refresh()
        self._refreshing = asyncio.create_task(self._keep_fresh())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.wait({self._refreshing})

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        """Return whose key the headers carry, names in lower case; `GatewayError` (401, 403)."""
        key = sent_key(headers)
        held = self._held.get(digest_of(key)) if key else None
        if held is None:
            return self._other(headers)
        return self._open(held, "The API key", _SEND_ONE)

    def _open(self, held: _Held, what: str, mend: str) -> Caller:
        if held.revoked:
            raise _refused(f"{what} was revoked.", "key_revoked", mend)
        if held.expires_at is not None and held.expires_at <= self._clock.now():
            raise _refused(f"{what} has expired.", "key_expired", mend)
        return held.caller

    def named(self, name: str) -> Caller:
        """Return the holder of a key by its name, for work that it has ordered.

        `GatewayError` (401) where the key is not there, or shut by now.
        """
        for held in self._held.values():
            if held.caller.key == name:
                return self._open(held, f"The key {name!r}", _MAKE_ONE)
        raise no_key(name)

    def known_by(self, digest: str) -> Caller:
        """Return the holder of a key by its digest, for who has shown the key itself before.

        `GatewayError` (401) where the key is not there, or shut by now.
        """
        held = self._held.get(digest)
        if held is None:
            raise _refused("The API key is wrong.", "invalid_api_key", _KNOWN)
        return self._open(held, "The API key", _KNOWN)

    @property
    def known(self) -> bool:
        """Whether there is a key that admits somebody."""
        now = self._clock.now()
        return any(
            not held.revoked and (held.expires_at is None or held.expires_at > now)
            for held in self._held.values()
        )

    @property
    def empty(self) -> bool:
        """Whether no key was ever made."""
        return not self._held

    async def refresh(self) -> None:
        """Look at the store now; `StoreError` where it cannot be read."""
        revision = await self._store.revision()
        if revision == self._revision:
            return
        entries = await self._store.all()
        self._held = {entry.digest: _held(entry.record) for entry in entries}
        self._revision = revision

    def _other(self, headers: Mapping[str, str]) -> Caller:
        if self._shared is not None:
            return self._shared(headers)
        if self._keyless is not None and not self._held:
            return self._keyless(headers)
        raise _refused("The API key is missing or wrong.", "invalid_api_key", _SEND_ONE)

    async def _keep_fresh(self) -> None:
        while True:
            await asyncio.sleep(_EVERY)
            # The view stays as it is while the store cannot be read.
            with suppress(StoreError):
                await self.refresh()


def _held(record: KeyRecord) -> _Held:
    caller = Caller(
        key=record.name,
        project=record.project,
        policies=record.policies,
        admin=record.admin,
        role=record.role,
        limits=record.limits,
    )
    return _Held(caller, record.expires_at, record.revoked_at is not None)


def _refused(message: str, code: str, mend: str) -> GatewayError:
    return GatewayError(message, status=401, code=code, mend=mend)
