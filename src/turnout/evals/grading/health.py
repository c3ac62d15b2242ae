"""Whether the instances of a set can judge on this machine: without a fix, and with the known one.

A set that nobody has checked counts the faults of its own tests against whoever is measured.
"""

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from turnout.errors import ConfigError, SandboxError, ToolError, UnfitError
from turnout.evals.grading.grade import Grader
from turnout.evals.grading.model import Grade, GradeName
from turnout.evals.grading.names import some
from turnout.evals.instances.model import Instance
from turnout.sandbox.base import BaseSpec

__all__ = ["Checker", "Health", "add_health", "load_health"]

_LARGEST: Final = 256 << 20


@dataclass(frozen=True, slots=True)
class Health:
    """What was found of one instance."""

    instance_id: str
    instance_digest: str
    sound: bool
    """Without a fix the right tests fail, and with the known one, if there is any, all pass."""
    detail: str
    """One sentence, about what is wrong where something is."""
    failed_before: bool | None = None
    gold: GradeName | None = None
    """Of the known fix, the worst of several times; None where none is known or it was not run."""
    times: int = 0
    """How often the known fix was graded."""
    environment: str = ""
    seconds: float = 0.0
    """Of all of it, without waiting."""
    schema: int = 1


class Checker:
    """Checks instances, several at once."""

    def __init__(self, grader: Grader, *, times: int = 1, jobs: int = 1) -> None:
        """Grade each known fix `times`, each time with another seed of hashes."""
        self._grader = grader
        self._times = times
        self._slots = asyncio.Semaphore(jobs)

    async def check(self, instance: Instance, base: BaseSpec) -> Health:
        """Check one instance; only cancellation comes out."""
        async with self._slots:
            began = time.monotonic()
            try:
                before = await self._grader.before(instance, base)
            except (SandboxError, UnfitError, ToolError) as error:
                return _health(instance, str(error), seconds=time.monotonic() - began)
            if before.fault:
                return _health(
                    instance,
                    before.fault,
                    failed_before=before.failed_before,
                    seconds=time.monotonic() - began,
                )
            diff = instance.patch.encode()
            grades = [
                await self._grader.grade(instance, base, diff, seed=seed)
                for seed in range(self._times if diff else 0)
            ]
            return _of_grades(instance, grades, time.monotonic() - began)


def _of_grades(instance: Instance, grades: Sequence[Grade], seconds: float) -> Health:
    wrong = [grade for grade in grades if grade.name != "resolved"]
    names = {grade.name for grade in grades}
    if not grades:
        fault, detail = "", "The right tests fail without a fix; none is known to try."
    elif len(names) > 1:
        fault = f"The known fix is graded {some(sorted(names))} by turns: {wrong[0].detail}"
        detail = fault
    else:
        fault = f"The known fix is {wrong[0].name}: {wrong[0].detail}" if wrong else ""
        detail = fault or f"The right tests fail without a fix. With it {_lower(grades[0].detail)}"
    return Health(
        instance.instance_id,
        instance.digest,
        sound=not fault,
        detail=detail,
        failed_before=True,
        gold=(wrong or grades)[0].name if grades else None,
        times=len(grades),
        environment=grades[0].environment if grades else "",
        seconds=seconds,
    )


def _health(
    instance: Instance, fault: str, *, failed_before: bool | None = None, seconds: float = 0.0
) -> Health:
    return Health(
        instance.instance_id,
        instance.digest,
        sound=False,
        detail=fault,
        failed_before=failed_before,
        seconds=seconds,
    )


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


@cache
def _adapter() -> TypeAdapter[Health]:
    return TypeAdapter(Health)


def load_health(path: Path) -> Mapping[str, Health]:
    """Return the newest row of each instance id; `ConfigError` names a line that is none.

    A row says nothing of an instance of another digest. A file that is not there holds nothing.
    """
    try:
        if path.exists() and path.stat().st_size > _LARGEST:
            raise ConfigError(f"{path} is larger than {_LARGEST >> 20} MiB.")
        data = path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None
    found: dict[str, Health] = {}
    # What a crash has left of a last line is no row.
    for number, line in enumerate(data.split(b"\n")[:-1], start=1):
        try:
            row = _adapter().validate_json(line)
        except ValidationError:
            raise ConfigError(
                f"{path}, line {number} says nothing of an instance's health.",
                mend="Name another file with --health.",
            ) from None
        found[row.instance_id] = row
    return found


def add_health(path: Path, row: Health) -> None:
    """Append a row so that it is there after a crash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(_adapter().dump_json(row) + b"\n")
        file.flush()
        os.fsync(file.fileno())
