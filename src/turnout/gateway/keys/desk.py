"""How keys are made and changed, from the command line and over HTTP."""

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal

from turnout.core.clock import Clock
from turnout.core.govern.keys import KeyEntry, KeyLimits, KeyRecord
from turnout.errors import ConflictError, NotFoundError, UsageError
from turnout.gateway.keys.ring import digest_of
from turnout.gateway.ports import KeyStore

__all__ = ["NAME_RULE", "Issued", "KeyDesk", "KeyState", "is_name", "new_key", "state_of"]

NAME_RULE: Final = (
    "A name is 1 to 64 letters, digits, `.`, `_` and `-`, and begins with a letter or digit."
)

KeyState = Literal["active", "expired", "revoked"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TAKEN = frozenset({"agent", "local", "shared"})
"""Callers without a key of their own go by these names."""
_PREFIX = "tk-"
_SHOWN = len(_PREFIX) + 4
_MOST = 10**15
_LONGEST = 256


@dataclass(frozen=True, slots=True)
class Issued:
    """A new key, seen this once."""

    key: str = field(repr=False)
    record: KeyRecord


def new_key() -> str:
    """Return a key that nobody can guess: 256 bits of chance."""
    return _PREFIX + secrets.token_urlsafe(32)


def state_of(record: KeyRecord, now: datetime) -> KeyState:
    """Return whether a key opens anything."""
    if record.revoked_at is not None:
        return "revoked"
    expired = record.expires_at is not None and record.expires_at <= now
    return "expired" if expired else "active"


async def _nobody() -> None:
    """Nobody serves in this process."""


class KeyDesk:
    """Reads and changes the keys of the store; what it takes is checked."""

    def __init__(
        self,
        store: KeyStore,
        clock: Clock,
        *,
        policies: Callable[[], Awaitable[Collection[str]]] | None = None,
        changed: Callable[[], Awaitable[None]] = _nobody,
    ) -> None:
        """Check names of policies against `policies`, and call `changed` after every change."""
        self._store = store
        self._clock = clock
        self._policies = policies
        self._changed = changed
        self._writing = asyncio.Lock()
        """Held from reading a key until it is written: no change is made of what is gone."""

    def now(self) -> datetime:
        """Return the moment by which keys expire."""
        return self._clock.now()

    async def create(self, wanted: KeyRecord) -> Issued:
        """Make a key as `wanted` says, whose `created_at` and `hint` do not count.

        `UsageError` where it says what cannot be, `ConflictError` where its name is taken.
        """
        await self._check(wanted)
        if wanted.expires_at is not None and wanted.expires_at <= self.now():
            raise UsageError("`expires` is a moment in the past.")
        key = new_key()
        hint = f"{key[:_SHOWN]}…{key[-4:]}"
        record = replace(wanted, created_at=self.now(), hint=hint, revoked_at=None)
        await self._store.add(KeyEntry(digest_of(key), record))
        await self._changed()
        return Issued(key, record)

    async def list(self) -> Sequence[KeyRecord]:
        """Return every key, by name."""
        return tuple(entry.record for entry in await self._store.all())

    async def get(self, name: str) -> KeyRecord:
        """Return one key; `NotFoundError` where there is none of that name."""
        for record in await self.list():
            if record.name == name:
                return record
        raise NotFoundError(
            f"There is no key {name!r}.", mend="`turnout keys list` shows the names."
        )

    async def update(self, name: str, change: Callable[[KeyRecord], KeyRecord]) -> KeyRecord:
        """Change a key; its holder goes on with it under what `change` makes of it.

        `UsageError` where that cannot be, `NotFoundError` where there is no such key,
        `ConflictError` where it was revoked.
        """
        async with self._writing:
            old = await self.get(name)
            new = replace(change(old), name=name, created_at=old.created_at, hint=old.hint)
            if new == old:
                return new
            if old.revoked_at is not None:
                raise ConflictError(
                    f"The key {name!r} was revoked: it stays as it is.",
                    mend="Make another with `turnout keys create`.",
                )
            await self._check(new)
            await self._store.put(new)
        await self._changed()
        return new

    async def revoke(self, name: str) -> KeyRecord:
        """Shut a key for good, within a second in every process; once is enough."""
        now = self.now()
        return await self.update(
            name, lambda record: replace(record, revoked_at=record.revoked_at or now)
        )

    async def _check(self, record: KeyRecord) -> None:
        if not is_name(record.name) or not is_name(record.project):
            raise UsageError(NAME_RULE)
        if record.name in _TAKEN:
            raise UsageError(
                f"{record.name!r} is what callers without a key are called.",
                mend="Choose another name.",
            )
        _check_limits(record.limits)
        if not record.policies:
            raise UsageError("A key has at least one policy.")
        known = None if self._policies is None else await self._policies()
        for policy in record.policies:
            if not 0 < len(policy) <= _LONGEST:
                raise UsageError(f"The name of a policy is 1 to {_LONGEST} characters.")
            if known is not None and policy not in known:
                names = ", ".join(sorted(known)) or "none"
                raise UsageError(
                    f"There is no policy {policy!r}.", mend=f"The policies are: {names}."
                )


def is_name(text: str) -> bool:
    """Whether a key or a project may be called so."""
    return _NAME.fullmatch(text) is not None


def _check_limits(limits: KeyLimits) -> None:
    for name in ("requests_per_minute", "concurrency", "spend_per_day"):
        value = getattr(limits, name)
        if value is not None and not 0 < value <= _MOST:
            raise UsageError(f"`{name}` must be above 0.", mend="To shut a key, revoke it.")
