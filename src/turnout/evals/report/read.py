"""Trials from a results file, or from a report that was kept as JSON."""

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from turnout.core.json import JsonObject
from turnout.errors import ConfigError
from turnout.evals.conditions.model import Conditions
from turnout.evals.report.json import KIND, SCHEMA, conditions_of, trials_of
from turnout.evals.trials.model import Trial
from turnout.evals.trials.store import Results

__all__ = ["Kept", "read_kept", "read_rows"]


@dataclass(frozen=True, slots=True)
class Kept:
    """What a file holds of an evaluation."""

    trials: tuple[Trial, ...]
    conditions: tuple[Conditions, ...]
    """What commands ran them under, oldest first."""


def read_rows(path: Path) -> tuple[Trial, ...]:
    """Return every result of a file, as `read_kept` does."""
    return read_kept(path).trials


def read_kept(path: Path) -> Kept:
    """Return every result of a file; of a report as JSON those that it was made of.

    `ConfigError` where there is no such file, or it is neither.
    """
    if not path.is_file():
        raise ConfigError(f"{path} is not there.", mend="`turnout eval run` writes results.")
    report = _report(path)
    if report is None:
        return _rows(path)
    schema = report.get("schema", SCHEMA)
    if not isinstance(schema, int) or schema > SCHEMA:
        raise ConfigError(
            f"{path} is a report of format {schema!r}, which this version does not know.",
            mend="Update Turnout, or make it again from its results.",
        )
    try:
        return Kept(trials_of(report), conditions_of(report))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(each) for each in first["loc"])
        raise ConfigError(
            f"{path} is a report, of which {place or 'the list of trials'} is wrong: "
            f"{first['msg']}.",
            mend="Make it again from its results.",
        ) from None


def _rows(path: Path) -> Kept:
    results = Results(path)
    if not results.rows and not results.evaluation and path.stat().st_size:
        raise ConfigError(
            f"{path} holds no whole result of an evaluation.",
            mend="Name a results file, or a report that was kept whole.",
        )
    return Kept(results.rows, results.conditions)


def _report(path: Path) -> JsonObject | None:
    """Return the object of a report; None where the file is none."""
    with path.open("rb") as file:
        first = _parsed(file.readline(1 << 20))
    if first is not None and first.get("kind") != KIND:
        return None
    value = _parsed(path.read_bytes())
    return value if value is not None and value.get("kind") == KIND else None


def _parsed(text: bytes) -> JsonObject | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
