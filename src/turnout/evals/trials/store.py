"""Results on disk: one JSON object a line, appended as each trial ends.

The line `{"evaluation": ID, "schema": N}` names the evaluation that the file holds: runs that it
has ordered are told from those of another file by it. A line `{"conditions": …}` says what the
trials that follow were run under. Blank lines are nothing, and a last line that was not written to
its end is no result.
"""

import fcntl
import json
import os
import secrets
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final, NoReturn

from pydantic import TypeAdapter, ValidationError

from turnout.core.json import JsonObject, ascii_json
from turnout.errors import ConfigError, ConflictError
from turnout.evals.conditions.model import Conditions, conditions_json, read_conditions
from turnout.evals.instances.model import Instance
from turnout.evals.trials.model import SCHEMA, Trial, Unit

__all__ = ["Results", "read_results", "read_trials"]

_LARGEST: Final = 1 << 30
_OPENING: Final = b'{"evaluation":'
"""How the first line of a file begins."""
_OF_TASKS: Final = ("problem_statement", "task", "hidden_tests", "fix_commit")
_MOST: Final = 10**15
"""Of any count, time or amount in micro-USD that was measured."""


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
        self._conditions: list[Conditions] = []
        self._evaluation = ""
        self._whole = 0
        """Bytes up to the end of the last line that was written to its end."""
        self._unended = False
        """Whether that line is whole but for its line end."""
        self._read()

    @property
    def evaluation(self) -> str:
        """Id of the evaluation; empty before anything was written."""
        return self._evaluation

    @property
    def conditions(self) -> tuple[Conditions, ...]:
        """What each command that has run trials ran them under, oldest first."""
        return tuple(self._conditions)

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

        A line that a crash has left unfinished is taken away: its trial is not done. A file that
        holds nothing of ours is left as it is (`ConfigError`).
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
            if self._unended:
                self._append("")
                self._unended = False
            if not self._evaluation:
                self._evaluation = f"eval-{secrets.token_hex(6)}"
                self._append(ascii_json({"evaluation": self._evaluation, "schema": SCHEMA}))
            yield
        finally:
            os.close(descriptor)

    def note(self, conditions: Conditions) -> None:
        """Append what the trials to come are run under; only while `writing`."""
        self._append(ascii_json({"conditions": conditions_json(conditions)}))
        self._conditions.append(conditions)

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
        self._conditions.clear()
        self._evaluation, self._whole, self._unended = "", 0, False
        try:
            data = self._bytes()
        except OSError as error:
            raise ConfigError(f"{self._path} cannot be read: {error.strerror}.") from error
        lines = data.split(b"\n")
        last = max((n for n, line in enumerate(lines) if line.strip()), default=-1)
        for at, line in enumerate(lines[: last + 1]):
            if not line.strip():
                self._whole += len(line) + 1
                continue
            if at == last and _is_torn(line) and self._may_be_torn(line):
                return
            self._take_line(line, at + 1)
            self._whole += len(line) + 1
        self._whole = len(data)
        self._unended = last == len(lines) - 1 and last >= 0

    def _may_be_torn(self, line: bytes) -> bool:
        """Whether the last line is what a crash has left of one of ours, and may be taken away."""
        ours = bool(self._evaluation or self._rows or self._conditions)
        return ours or _OPENING.startswith(line) or line.startswith(_OPENING)

    def _bytes(self) -> bytes:
        if not self._path.exists():
            return b""
        if self._path.stat().st_size > _LARGEST:
            raise ConfigError(f"{self._path} is larger than {_LARGEST >> 30} GiB.")
        return self._path.read_bytes()

    def _take_line(self, line: bytes, number: int) -> None:
        row: object = None
        place = f"{self._path}, line {number}"
        try:
            row = json.loads(line, parse_constant=_no_number)
            if not isinstance(row, dict):
                raise ValueError("no object")
            if isinstance(row.get("evaluation"), str):
                _check_schema(row.get("schema", SCHEMA))
                # Files that were put together have several; runs are of the first.
                self._evaluation = self._evaluation or row["evaluation"]
                return
            if "conditions" in row:
                self._conditions.append(read_conditions(row["conditions"]))
                return
            self._take(_sound(_adapter().validate_json(ascii_json(_dated(row)))))
        except (ValidationError, ValueError, RecursionError) as error:
            self._refuse(place, number, row, error)

    def _refuse(self, place: str, number: int, row: object, error: Exception) -> NoReturn:
        """Say what is wrong with a line, and what to do about it."""
        if isinstance(error, _NewerError):
            raise ConfigError(f"{place}: {error}.", mend="Update Turnout.") from None
        ours = bool(self._evaluation or self._rows or self._conditions)
        known = isinstance(row, dict) and ("grade" in row or "conditions" in row)
        why = f": {_fault(error)}" if known or isinstance(error, _NoNumberError) else ""
        if ours and not why:
            why = ": it is no JSON object" if not isinstance(row, dict) else ": it has no grade"
        if ours:
            path = shlex.quote(str(self._path))
            mend = f"Take the line away, and its trial is run again: sed -i {number}d {path}"
        elif isinstance(row, dict) and not row.keys().isdisjoint(_OF_TASKS):
            mend = (
                f"These are tasks. Their results are in {self._path.stem}.results.jsonl by default."
            )
        else:
            mend = (
                "Results are files that `turnout eval run` writes, by default "
                "TASKS.results.jsonl. Name that one."
            )
        raise ConfigError(f"{place} is no result of an evaluation{why}.", mend=mend) from None

    def _take(self, trial: Trial) -> None:
        self._rows.append(trial)
        self._newest[trial.unit] = trial


def read_trials(path: Path) -> tuple[Trial, ...]:
    """Return the newest result of every unit of a file; the errors of `read_results`."""
    return read_results(path).trials


def read_results(path: Path) -> Results:
    """Return the results of a file, which an evaluation may be writing to.

    `ConfigError` where there is no such file, or it is none of results.
    """
    if not path.exists():
        raise ConfigError(f"{path} is not there.", mend="`turnout eval run` writes results.")
    return Results(path)


class _NoNumberError(ValueError):
    """A number of JSON that is none."""


class _NewerError(ValueError):
    """A line of a format that this version does not know."""


def _is_torn(line: bytes) -> bool:
    """Whether a line is no JSON, as what is left of one that was being written."""
    try:
        json.loads(line)
    except RecursionError:
        return False
    except ValueError:
        return True
    return False


def _check_schema(schema: object) -> None:
    """Raise `ValueError` for a format that this version does not write, nor older ones."""
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 0:
        raise ValueError("schema is no number of a format")
    if schema > SCHEMA:
        raise _NewerError(f"it is of format {schema}, written by a newer version of Turnout")


def _no_number(text: str) -> float:
    raise _NoNumberError(f"{text} is no number")


def _sound(trial: Trial) -> Trial:
    """Return a trial; ValueError where a number of it can be none that was measured."""
    _check_schema(trial.schema)
    if trial.started_at is not None and trial.started_at.tzinfo is None:
        raise ValueError("started_at names no time zone")
    if trial.attempt < 1:
        raise ValueError("attempt is below 1")
    counts = (trial.steps, trial.tool_calls, trial.tool_failures, trial.repairs, trial.nudges)
    times = (trial.seconds, trial.grading_seconds, trial.overhead_seconds)
    costs = (trial.cost_micros or 0, *(each.cost_micros or 0 for each in trial.usage))
    if min(*counts, *times, *costs) < 0 or max(*counts, *times, *costs) > _MOST:
        raise ValueError("a count, a time or an amount is out of range")
    return trial


def _fault(error: Exception) -> str:
    """Return what is wrong with a row, in a few words."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error)


def _dated(row: JsonObject) -> JsonObject:
    """Return a row with what rows without a schema number called otherwise."""
    if "schema" in row:
        return row
    return {**row, "schema": 0, "tests_touched": row.get("dropped", [])}
