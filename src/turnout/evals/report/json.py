"""A report as one JSON object, which holds the trials that it follows from."""

from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter

from turnout.core.json import JsonObject
from turnout.evals.conditions.model import Conditions, conditions_json, read_conditions
from turnout.evals.report.model import Report, Section
from turnout.evals.report.words import remarks
from turnout.evals.trials.model import Trial

__all__ = ["KIND", "SCHEMA", "conditions_of", "report_json", "trials_of"]

KIND: Final = "turnout eval report"
"""What the object calls itself."""

SCHEMA: Final = 1
"""Of the object; newer ones are not read."""


@cache
def _sections() -> TypeAdapter[tuple[Section, ...]]:
    return TypeAdapter(tuple[Section, ...])


@cache
def _trials() -> TypeAdapter[tuple[Trial, ...]]:
    return TypeAdapter(tuple[Trial, ...])


def report_json(report: Report) -> JsonObject:
    """Return the report; `docs/reference/eval-files.md` says what its fields are.

    Patches are left out: the results file has them.
    """
    sections: list[Any] = _sections().dump_python(
        report.sections, mode="json", exclude={"__all__": {"tasks": True, "conditions": True}}
    )
    for section, told in zip(report.sections, sections, strict=True):
        told["remarks"] = list(remarks(section))
    trials: list[Any] = _trials().dump_python(
        report.trials, mode="json", exclude={"__all__": {"diff": True}}
    )
    return {
        "kind": KIND,
        "schema": SCHEMA,
        "notes": list(report.notes),
        "sections": sections,
        "conditions": [conditions_json(each) for each in report.conditions],
        "trials": trials,
    }


def trials_of(value: JsonObject) -> tuple[Trial, ...]:
    """Return the trials of a report's object, without their patches.

    A `pydantic.ValidationError` says what is wrong with it.
    """
    return _trials().validate_python(value.get("trials"))


def conditions_of(value: JsonObject) -> tuple[Conditions, ...]:
    """Return what the trials of a report's object were run under, the same."""
    found = value.get("conditions")
    return tuple(read_conditions(each) for each in found) if isinstance(found, list) else ()
