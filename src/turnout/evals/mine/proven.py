"""What was proven of facts, kept beside the results of the evaluation that needed it.

An instance that was read from facts does not name the tests that must keep passing. They are found
out once, by the same proof as in mining, and kept in a file of JSON lines.
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from turnout import __version__
from turnout.errors import ConfigError, ConflictError, SandboxError
from turnout.evals.instances.model import Instance
from turnout.evals.mine.filling import complete
from turnout.evals.mine.output import held
from turnout.evals.mine.prove import Prover
from turnout.evals.mine.reasons import REASONS, Dropped, Reason

__all__ = ["LeftOut", "ProvenFile", "prove_facts"]

_LARGEST: Final = 256 << 20
_AGAIN: Final = frozenset({"unprepared", "slow"})
"""Reasons that may have gone another time: a mirror of packages was away, a machine was busy."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An instance of which the facts do not hold on this machine."""

    instance: Instance
    why: str
    """One sentence."""


def _named(name: str) -> Any:
    """Return a list of tests that is written under the name that rows have for it."""
    return Field(default=(), validation_alias=name, serialization_alias=name)


class _Line(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    instance_id: str
    instance_digest: str
    harness: str = __version__
    problem_statement: str = ""
    fail_to_pass: tuple[str, ...] = _named("FAIL_TO_PASS")
    pass_to_pass: tuple[str, ...] = _named("PASS_TO_PASS")
    test_command: str = ""
    reason: Reason | None = None
    """Why the facts do not hold; None: they do."""
    detail: str = ""


class ProvenFile:
    """The proofs of a set's facts; each is on disk when a method returns."""

    def __init__(self, path: Path) -> None:
        """Read what is there; `ConfigError` where the file is none of proofs."""
        self.path: Final = path
        self._known = {(each.instance_id, each.instance_digest): each for each in _lines(path)}

    def whole(self, instance: Instance) -> Instance | LeftOut | None:
        """Return an instance with what was proven of it; None where nothing was yet."""
        line = self._known.get((instance.instance_id, instance.digest))
        if line is None:
            return None
        if line.reason is not None:
            return LeftOut(instance, _why(Dropped(line.reason, line.detail)))
        return replace(
            instance,
            problem_statement=line.problem_statement,
            fail_to_pass=line.fail_to_pass,
            pass_to_pass=line.pass_to_pass,
            test_command=line.test_command or None,
            bare=False,
        )

    def add(self, instance: Instance, found: Instance | Dropped) -> None:
        """Keep what came of a proof, unless it may come out otherwise another time."""
        if isinstance(found, Dropped):
            if found.reason in _AGAIN:
                return
            line = _Line(
                instance_id=instance.instance_id,
                instance_digest=instance.digest,
                reason=found.reason,
                detail=found.detail,
            )
        else:
            line = _Line(
                instance_id=instance.instance_id,
                instance_digest=instance.digest,
                problem_statement=found.problem_statement,
                fail_to_pass=found.fail_to_pass,
                pass_to_pass=found.pass_to_pass,
                test_command=found.test_command or "",
            )
        with self.path.open("ab") as file:
            file.write(line.model_dump_json(by_alias=True).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._known[line.instance_id, line.instance_digest] = line

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes from proving into the same file; `ConflictError` where one does."""
        taken = ConflictError(
            f"Another process proves facts into {self.path}.", mend="Wait for its end."
        )
        with held(self.path, taken):
            # What a crash has left of a last line is no proof.
            data = self.path.read_bytes()
            os.truncate(self.path, data.rfind(b"\n") + 1)
            yield


async def prove_facts(
    instances: Sequence[Instance],
    prover: Prover,
    kept: ProvenFile,
    *,
    jobs: int,
    tell: Callable[[Instance | LeftOut], None],
) -> tuple[LeftOut, ...]:
    """Prove the instances that are facts alone and are not kept yet, several at a time.

    Return those that were refuted now: a sandbox that fails us leaves its instance out this time.
    """
    slots = asyncio.Semaphore(jobs)
    refuted: list[LeftOut] = []

    async def settle(instance: Instance) -> None:
        async with slots:
            try:
                found = await complete(instance, prover)
            except SandboxError as error:
                found = Dropped("unprepared", error.message)
        kept.add(instance, found)
        told = LeftOut(instance, _why(found)) if isinstance(found, Dropped) else found
        refuted.extend([told] if isinstance(told, LeftOut) else [])
        tell(told)

    todo = [each for each in instances if each.bare and kept.whole(each) is None]
    tasks = [asyncio.create_task(settle(each)) for each in todo]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return tuple(refuted)


def _why(dropped: Dropped) -> str:
    said = REASONS[dropped.reason]
    return f"{said} ({dropped.detail})" if dropped.detail else said


def _lines(path: Path) -> list[_Line]:
    """Return what the whole lines of a file say."""
    try:
        if path.exists() and path.stat().st_size > _LARGEST:
            raise ConfigError(f"{path} is larger than {_LARGEST >> 20} MiB.")
        data = path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None
    found = []
    for number, line in enumerate(data.split(b"\n")[:-1], start=1):
        try:
            found.append(_Line.model_validate_json(line))
        except ValidationError:
            raise ConfigError(
                f"{path}, line {number} is no proof of a fix.", mend="Move the file away."
            ) from None
    return found
