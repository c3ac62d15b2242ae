"""Facts of mined fixes, proven here and made whole: rows that need their clone for nothing else."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from turnout.core.json import JsonObject
from turnout.evals.grading.names import as_called_here
from turnout.evals.instances.mined import statement
from turnout.evals.instances.model import Instance
from turnout.evals.mine.mining import Told
from turnout.evals.mine.output import MinedFile
from turnout.evals.mine.prove import Glance, Prover
from turnout.evals.mine.reasons import Dropped

__all__ = ["Facts", "complete", "fill"]

_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Facts:
    """A row that names a fix, and the instance that was read from it."""

    row: JsonObject
    """As it is written."""
    instance: Instance

    @property
    def commit(self) -> str:
        """The fix, as the row names it."""
        return str(self.row.get("fix_commit", ""))


async def complete(instance: Instance, prover: Prover) -> Instance | Dropped:
    """Return an instance with the tests that pass before its fix and with it, and its command.

    Its own `fail_to_pass` must be among those that the fix mends here, whatever the parameters of a
    test are called by this version of pytest, and as many others must pass as its facts have
    counted. A statement that was made of its facts is made anew, with what its tests fail with.
    """
    proof = await prover.prove(instance)
    if isinstance(proof, Dropped):
        return proof
    heard = {*proof.fail_to_pass, *proof.pass_to_pass}
    wanted = as_called_here(instance.fail_to_pass, heard, proof.fail_to_pass)
    missing = sorted(set(wanted) - set(proof.fail_to_pass))
    if missing:
        return Dropped("differs", f"not mended here: {', '.join(missing[:_SHOWN])}")
    if instance.counted not in (None, len(proof.pass_to_pass)):
        said = f"{len(proof.pass_to_pass)} other tests pass, the facts say {instance.counted}"
        return Dropped("differs", said)
    named = wanted or proof.fail_to_pass
    return replace(
        instance,
        problem_statement=await _told(instance, named, proof.command, prover),
        fail_to_pass=named,
        pass_to_pass=proof.pass_to_pass,
        test_command=proof.command,
        bare=False,
    )


async def _told(instance: Instance, named: Sequence[str], command: str, prover: Prover) -> str:
    """Return the task in words: as the row has them, else by what its tests fail with."""
    if instance.problem_statement != statement(instance.title, instance.fail_to_pass):
        return instance.problem_statement
    glance = await prover.glance(instance, command)
    return statement(instance.title, named, glance.errors if isinstance(glance, Glance) else {})


async def fill(
    facts: Sequence[Facts],
    prover: Prover,
    out: MinedFile,
    *,
    jobs: int,
    tell: Callable[[Told], None],
) -> None:
    """Prove every row that is not in the file, several at a time, and append it made whole."""
    slots = asyncio.Semaphore(jobs)

    async def settle(each: Facts) -> None:
        async with slots:
            found = await _whole(each, prover)
        if isinstance(found, Dropped):
            out.drop(each.commit, each.instance.title, found)
            tell(Told(each.commit, each.instance.title, found))
        else:
            out.keep(found)
            tell(Told(each.commit, each.instance.title, each.instance.difficulty))

    todo = [each for each in facts if each.commit not in out.commits]
    tasks = [asyncio.create_task(settle(each)) for each in todo]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _whole(facts: Facts, prover: Prover) -> Dropped | JsonObject:
    instance = facts.instance
    done = await complete(instance, prover)
    if isinstance(done, Dropped):
        return done
    return {
        **facts.row,
        "clone": instance.repository,
        "base_commit": instance.base_commit,
        "problem_statement": done.problem_statement,
        "patch": done.patch,
        "test_patch": done.test_patch,
        "hidden_tests": dict(done.hidden_tests),
        "FAIL_TO_PASS": list(done.fail_to_pass),
        "PASS_TO_PASS": list(done.pass_to_pass),
        "test_command": done.test_command,
    }
