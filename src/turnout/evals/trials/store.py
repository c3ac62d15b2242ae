"""Results on disk: one JSON object a line, appended as each trial ends.

The line `{"evaluation": ID, "schema": N}` names the evaluation that the file holds: runs that it
has ordered are told from those of another file by it.
"""

import fcntl
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from turnout.core.json import JsonObject, ascii_json
from turnout.errors import ConfigError, ConflictError
from turnout.evals.instances.model import Instance
from turnout.evals.trials.model import SCHEMA, Trial, Unit

__all__ = ["Results", "read_trials"]

_LARGEST: Final = 1 << 30


@cache
def _adapter() -> TypeAdapter[Trial]:
    return TypeAdapter(Trial)


class Results:
    """The trials of a results file; opening it reads what is there and changes nothing."""

    def __init__(self, path: Path) -> None:
        """`ConfigError` where the file is none of results."""
        self._path = path
        self._newest: dict[Unit, Trial] = {}
        self._rows: list[Trial] = []
        self._evaluation = ""
        self._whole = 0
        """Bytes up to the end of the last line that was written to its end."""
        self._read()

    @property
    def evaluation(self) -> str:
        """Id of the evaluation; empty before anything was written."""
        return self._evaluation

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The newest result of every unit, in the order in which the units were first ended."""
        return tuple(self._newest.values())

    @property
    def rows(self) -> tuple[Trial, ...]:
        """Every result, those included that a later one of the same unit stands for."""
        return tuple(self._rows)

    def of(self, instances: Sequence[Instance]) -> tuple[Trial, ...]:
        """Return the newest results of `instances`, in their order."""
        found: dict[tuple[str, str], list[Trial]] = {}
        for trial in self._newest.values():
            found.setdefault((trial.instance_id, trial.instance_digest), []).append(trial)
        keys = dict.fromkeys((each.instance_id, each.digest) for each in instances)
        return tuple(trial for key in keys for trial in found.get(key, ()))

    def newest(self, unit: Unit) -> Trial | None:
        """Return what became of a unit; None where it has no result yet."""
        return self._newest.get(unit)

    def done(self, unit: Unit) -> bool:
        """Say whether a unit has a result; what could not be graded is not done."""
        trial = self._newest.get(unit)
        return trial is not None and trial.graded

    def failures(self, unit: Unit) -> int:
        """Return how many runs of a unit have come to nothing, by no fault of their patch."""
        return sum(trial.unit == unit and trial.run_failed for trial in self._rows)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Take the file for writing, as nobody else may meanwhile (`ConflictError`).

        A line that a crash has left unfinished is taken away: its trial is not done.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConflictError(
                    f"Another evaluation writes to {self._path}.",
                    mend="Wait for its end, or name another file with --results.",
                ) from None
            self._read()
            os.truncate(descriptor, self._whole)
            if not self._evaluation:
                self._evaluation = f"eval-{secrets.token_hex(6)}"
                self._append(ascii_json({"evaluation": self._evaluation, "schema": SCHEMA}))
            yield
        finally:
            os.close(descriptor)

    def add(self, trial: Trial) -> None:
        """Append a result so that it is there after a crash; only while `writing`."""
        self._append(_adapter().dump_json(trial).decode())
        self._take(trial)

    def _append(self, line: str) -> None:
        with self._path.open("ab") as file:
            file.write(f"{line}\n".encode())
            file.flush()
            os.fsync(file.fileno())

    def _read(self) -> None:
        self._newest.clear()
        self._rows.clear()
        try:
            data = self._bytes()
        except OSError as error:
            raise ConfigError(f"{self._path} cannot be read: {error.strerror}.") from error
        whole, end, _ = data.rpartition(b"\n")
        self._whole = len(whole) + len(end)
        for number, line in enumerate(whole.split(b"\n") if end else [], start=1):
            self._take_line(line, f"{self._path}, line {number}")

    def _bytes(self) -> bytes:
        if not self._path.exists():
            return b""
        if self._path.stat().st_size > _LARGEST:
            raise ConfigError(f"{self._path} is larger than {_LARGEST >> 30} GiB.")
        return self._path.read_bytes()

    def _take_line(self, line: bytes, place: str) -> None:
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError("no object")
            if isinstance(row.get("evaluation"), str):
                self._evaluation = row["evaluation"]
                return
            self._take(_adapter().validate_json(ascii_json(_dated(row))))
        except (ValidationError, ValueError, RecursionError):
            raise ConfigError(
                f"{place} is no result of an evaluation.", mend="Name another file with --results."
            ) from None

    def _take(self, trial: Trial) -> None:
        self._rows.append(trial)
        self._newest[trial.unit] = trial


def read_trials(path: Path) -> tuple[Trial, ...]:
    """Return the newest result of every unit of a file, which an evaluation may be writing to.

    `ConfigError` where there is no such file, or it is none of results.
    """
    if not path.exists():
        raise ConfigError(f"{path} is not there.", mend="`turnout eval run` writes results.")
    return Results(path).trials


def _dated(row: JsonObject) -> JsonObject:
    """Return a row with what rows without a schema number called otherwise."""
    if "schema" in row:
        return row
    return {**row, "schema": 0, "tests_touched": row.get("dropped", [])}
