"""Results on disk: one JSON object a line, appended as each trial ends."""

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from turnout.errors import ConfigError
from turnout.evals.instances import Instance
from turnout.evals.trial import Trial

__all__ = ["Results"]


@cache
def _adapter() -> TypeAdapter[Trial]:
    return TypeAdapter(Trial)


class Results:
    """The trials of a results file; opening it reads what earlier runs of the command left."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._trials: dict[tuple[str, str], Trial] = {}
        data = path.read_bytes() if path.exists() else b""
        whole, _, partial = data.rpartition(b"\n")
        for number, line in enumerate(whole.split(b"\n") if whole else [], start=1):
            self._take(_read(line, f"{path}, line {number}"))
        if partial:
            # A crash in the middle of a line: that trial is not done.
            os.truncate(path, len(data) - len(partial))

    def done(self, instance: Instance) -> Trial | None:
        """Return the result of this very row; what could not be graded is not done."""
        trial = self._trials.get((instance.instance_id, instance.digest))
        return None if trial is None or trial.grade == "infrastructure" else trial

    def add(self, trial: Trial) -> None:
        """Append a result so that it is there after a crash."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.write(_adapter().dump_json(trial) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._take(trial)

    def of(self, instances: Sequence[Instance]) -> tuple[Trial, ...]:
        """Return the newest results of `instances`, in their order; those without are left out."""
        keys = [(each.instance_id, each.digest) for each in instances]
        return tuple(self._trials[key] for key in keys if key in self._trials)

    def _take(self, trial: Trial) -> None:
        self._trials[(trial.instance_id, trial.instance_digest)] = trial


def _read(line: bytes, place: str) -> Trial:
    try:
        return _adapter().validate_json(line)
    except ValidationError:
        raise ConfigError(
            f"{place} is no result of an evaluation.", mend="Name another file with --results."
        ) from None
