"""Which machines are rented, on disk, so that a crash of the service leaves none behind."""

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from pydantic import BaseModel, ValidationError

from turnout.core.ids import RunId

__all__ = ["Entry", "Forsaken", "Roster"]


class _Noted(BaseModel):
    run: str = ""
    machine: str = ""


@dataclass(frozen=True, slots=True)
class Forsaken:
    """A machine whose service died."""

    path: Path
    run_id: RunId
    machine_id: str
    """Empty where the service died before it had one."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One machine; its file is locked for as long as the service that rented it lives."""

    path: Path
    fd: int

    def note(self, run_id: RunId, machine_id: str) -> None:
        """Write down what has to be given back if the service cannot do it any more."""
        os.pwrite(self.fd, _Noted(run=run_id, machine=machine_id).model_dump_json().encode(), 0)

    def settle(self) -> None:
        """Forget the machine."""
        self.path.unlink(missing_ok=True)
        os.close(self.fd)


class Roster:
    """The folder that has a file for each machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self) -> Entry:
        """Register a machine before it is rented."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / f"{token_hex(8)}.json"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        return Entry(path, fd)

    def forsaken(self, known: frozenset[RunId]) -> tuple[Forsaken, ...]:
        """Return the machines of runs that are not known and whose service is gone."""
        found = []
        for path in sorted(self._folder.glob("*.json")):
            with suppress(OSError), path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                noted = _read(file.read())
                if noted.run not in known:
                    found.append(Forsaken(path, RunId(noted.run), noted.machine))
        return tuple(found)


def _read(data: bytes) -> _Noted:
    """Return what is noted; nothing where the service died before it was."""
    try:
        return _Noted.model_validate_json(data)
    except ValidationError:
        return _Noted()
