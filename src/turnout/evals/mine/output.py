"""What mining has found so far, on disk: it goes on from there.

`FILE` holds the rows; beside it `STEM.dropped.jsonl` says why each other commit was left out.
"""

import fcntl
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError

from turnout.core.json import JsonObject
from turnout.errors import ConfigError, ConflictError
from turnout.evals.mine.reasons import Dropped, Reason

__all__ = ["MinedFile", "held"]

Line = TypeVar("Line", bound=BaseModel)

_AGAIN: Final = frozenset({"unprepared"})
"""Reasons that may have gone another time: a mirror of packages was away, say."""
_LARGEST: Final = 1 << 30


class _Kept(BaseModel):
    instance_id: str
    fix_commit: str = ""
    difficulty: str = ""


class _Gone(BaseModel):
    commit: str
    title: str = ""
    reason: Reason
    detail: str = ""
    asked: str = ""
    """Hash of what was asked for: under other rules the commit is looked at again."""


@contextmanager
def held(path: Path, taken: ConflictError) -> Iterator[None]:
    """Hold a file, made where there is none; raise `taken` where another process holds it.

    `ConfigError` where it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.open("ab")
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be written: {error.strerror}.",
            mend="Keep the file in a folder that you may write to.",
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise taken from None
        yield


class MinedFile:
    """The rows that were kept, and what was dropped; each is on disk when a method returns."""

    def __init__(self, path: Path, *, asked: str) -> None:
        """Read what is there; `ConfigError` where it is not what mining writes."""
        self.path: Final = path
        self.dropped_path: Final = path.with_name(f"{path.stem}.dropped.jsonl")
        self._asked = asked
        kept = _rows(_Kept, path)
        self._ids = {row.instance_id for row in kept}
        self._fixes = {row.fix_commit for row in kept if row.fix_commit}
        self._sizes = Counter(row.difficulty for row in kept)
        gone = _rows(_Gone, self.dropped_path)
        mine = {
            each.commit: each for each in gone if each.asked == asked and each.reason not in _AGAIN
        }
        self._reasons = Counter(each.reason for each in mine.values())
        self._gone = set(mine)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes from mining into the same file; `ConflictError` where one does.

        What has nothing to say in the end leaves no file behind.
        """
        with held(self.dropped_path, self._taken()):
            if not self.dropped_path.exists():
                # Whoever held it until now has left nothing to say, and taken it away.
                raise self._taken()
            try:
                yield
            finally:
                if self.dropped_path.exists() and not self.dropped_path.stat().st_size:
                    self.dropped_path.unlink()

    def _taken(self) -> ConflictError:
        return ConflictError(
            f"Another process is mining into {self.path}.",
            mend="Wait for it, or name another file with -o.",
        )

    @property
    def commits(self) -> frozenset[str]:
        """Full names of the fixes that are decided."""
        return frozenset(self._fixes | self._gone)

    @property
    def fixes(self) -> frozenset[str]:
        """Full names of the fixes that were kept."""
        return frozenset(self._fixes)

    @property
    def ids(self) -> frozenset[str]:
        """Names of the rows that were kept."""
        return frozenset(self._ids)

    @property
    def kept(self) -> int:
        """How many rows there are."""
        return len(self._ids)

    @property
    def sizes(self) -> Mapping[str, int]:
        """How many rows there are of each class of size."""
        return self._sizes

    @property
    def reasons(self) -> Mapping[Reason, int]:
        """How many commits were left out for each reason."""
        return self._reasons

    def keep(self, row: JsonObject) -> None:
        """Append a row."""
        read = _Kept.model_validate(row)
        _append(self.path, row)
        self._ids.add(read.instance_id)
        self._fixes.add(read.fix_commit)
        self._sizes[read.difficulty] += 1

    def drop(self, commit: str, title: str, dropped: Dropped) -> None:
        """Note why a commit is left out; what its title alone says is counted and not noted."""
        self._reasons[dropped.reason] += 1
        self._gone.add(commit)
        if dropped.reason != "not_a_fix":
            gone = _Gone(
                commit=commit,
                title=title,
                reason=dropped.reason,
                detail=dropped.detail,
                asked=self._asked,
            )
            _append(self.dropped_path, gone.model_dump())


def _append(path: Path, row: JsonObject) -> None:
    with path.open("ab") as file:
        file.write(json.dumps(row).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _rows(kind: type[Line], path: Path) -> list[Line]:
    """Return what the whole lines of a file say; a crash in the middle of the last is cut off."""
    try:
        if path.stat().st_size > _LARGEST:
            raise ConfigError(f"{path} is longer than 1 GiB.", mend="Write to another file.")
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from None
    whole = data[: data.rfind(b"\n") + 1]
    if data and not whole:
        raise _foreign(path)
    rows = []
    for line in whole.split(b"\n"):
        try:
            rows += [kind.model_validate_json(line)] if line.strip() else []
        except ValidationError:
            raise _foreign(path) from None
    if len(whole) < len(data):
        os.truncate(path, len(whole))
    return rows


def _foreign(path: Path) -> ConfigError:
    return ConfigError(
        f"{path} holds a line that mining did not write.", mend="Name another file with -o."
    )
