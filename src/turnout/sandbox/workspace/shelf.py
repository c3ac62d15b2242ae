"""Folders of the state that are made once for each key, shared, and never changed."""

import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

from turnout.errors import UnfitError
from turnout.sandbox.workspace.building import building
from turnout.sandbox.workspace.folders import traversable
from turnout.sandbox.workspace.locks import locked
from turnout.sandbox.workspace.use import touched

__all__ = ["Facts", "Made", "Shelf"]

_LOCK_TIMEOUT = 1_800.0
_RETRY_AFTER = 3_600.0
_FACTS = "facts.json"


class Facts(BaseModel):
    """What is known of a folder that was made."""

    lacking: bool = False
    """Something could not be had that may be there later: it is made anew after an hour."""


F = TypeVar("F", bound=Facts)


@dataclass(frozen=True, slots=True)
class Made(Generic[F]):
    """A folder and what is known of it."""

    folder: Path
    facts: F


class Shelf(Generic[F]):
    """The folders of one kind: `KIND/KEY-TOKEN`, of which the newest of a key counts."""

    def __init__(self, state_dir: Path, kind: str, facts: type[F]) -> None:
        self._state_dir = state_dir
        self._root = traversable(state_dir / kind)
        self._facts = facts

    async def get(self, key: str, make: Callable[[Path], Awaitable[F]]) -> Made[F]:
        """Return the folder of a key; `make` fills an empty one where there is none.

        Only one caller of all processes makes it. Where it is to be made anew and cannot be, the
        former one stays.
        """
        lock = self._state_dir / "locks" / f"{self._root.name}-{key}"
        async with locked(lock, timeout=_LOCK_TIMEOUT):
            found = self._find(key)
            if found is None or self._is_stale(found):
                found = await self._make(key, make, found)
        return found

    def _find(self, key: str) -> Made[F] | None:
        newest: tuple[float, Made[F]] | None = None
        for folder in self._root.glob(f"{key}-*"):
            try:
                made = (folder / _FACTS).stat().st_mtime
                facts = self._facts.model_validate_json((folder / _FACTS).read_bytes())
            except (FileNotFoundError, ValidationError):
                continue
            if newest is None or made > newest[0]:
                newest = (made, Made(folder, facts))
        if newest is None or not touched(self._state_dir, newest[1].folder):
            return None
        return newest[1]

    def _is_stale(self, made: Made[F]) -> bool:
        age = time.time() - (made.folder / _FACTS).stat().st_mtime
        return made.facts.lacking and age > _RETRY_AFTER

    async def _make(
        self, key: str, make: Callable[[Path], Awaitable[F]], former: Made[F] | None
    ) -> Made[F]:
        made = self._root / f"{key}-{token_hex(4)}"
        try:
            async with building(self._root, key) as folder:
                facts = await make(folder)
                (folder / _FACTS).write_text(facts.model_dump_json(), "utf-8")
                folder.rename(made)
        except UnfitError:
            if former is None:
                raise
            os.utime(former.folder / _FACTS)
            return former
        return Made(made, facts)
