"""The objects of a cluster and their changes."""

import asyncio
import copy
import itertools
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import uuid4

__all__ = ["Change", "Store"]

Thing = dict[str, Any]
"""An object as JSON has it."""


class Change(NamedTuple):
    """Something that became of an object."""

    version: int
    kind: str
    """`ADDED`, `MODIFIED` or `DELETED`."""
    collection: str
    thing: Thing


class Store:
    """Objects by their collection, which is the path of their list, and by their name."""

    def __init__(self) -> None:
        self._things: dict[str, dict[str, Thing]] = {}
        self._versions = itertools.count(1)
        self._changes: list[Change] = []
        self._changed = asyncio.Condition()

    def get(self, collection: str, name: str) -> Thing | None:
        """Return a copy of an object."""
        return copy.deepcopy(self._things.get(collection, {}).get(name))

    def list(self, collection: str, labels: Mapping[str, str]) -> list[Thing]:
        """Return copies of the objects that bear labels."""
        found = self._things.get(collection, {}).values()
        return [
            copy.deepcopy(thing)
            for thing in found
            if labels.items() <= thing["metadata"].get("labels", {}).items()
        ]

    async def add(self, collection: str, thing: Thing) -> Thing:
        """Add an object under the name in it."""
        made = copy.deepcopy(thing)
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        made["metadata"] |= {"uid": str(uuid4()), "creationTimestamp": now}
        return await self._note("ADDED", collection, made)

    async def merge(self, collection: str, name: str, patch: Thing) -> Thing | None:
        """Merge a patch into an object, as a merge patch does."""
        thing = self._things.get(collection, {}).get(name)
        if thing is None:
            return None
        return await self._note("MODIFIED", collection, _merged(thing, patch))

    async def remove(self, collection: str, name: str) -> Thing | None:
        """Remove an object and return it."""
        thing = self._things.get(collection, {}).pop(name, None)
        return None if thing is None else await self._note("DELETED", collection, thing)

    async def watch(self, collection: str, since: int) -> AsyncIterator[Change]:
        """Yield what became of a collection's objects after a version, for ever."""
        for position in itertools.count():
            async with self._changed:
                while len(self._changes) <= position:
                    await self._changed.wait()
            change = self._changes[position]
            if change.collection == collection and change.version > since:
                yield change

    async def _note(self, kind: str, collection: str, thing: Thing) -> Thing:
        version = next(self._versions)
        thing["metadata"]["resourceVersion"] = str(version)
        if kind != "DELETED":
            self._things.setdefault(collection, {})[thing["metadata"]["name"]] = thing
        async with self._changed:
            self._changes.append(Change(version, kind, collection, copy.deepcopy(thing)))
            self._changed.notify_all()
        return copy.deepcopy(thing)


def _merged(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    joined = old | {name: _merged(old.get(name), value) for name, value in new.items()}
    return {name: value for name, value in joined.items() if value is not None}
