"""Instances that are facts alone, proven before anything is judged by them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

from turnout.evals.instances.model import Instance
from turnout.evals.mine.prove import Prover
from turnout.evals.mine.proven import LeftOut, ProvenFile, prove_facts
from turnout.runs.ports import Report
from turnout.settings import Settings
from turnout.wiring.evaluation.opening import grading_slots
from turnout.wiring.sandboxes import open_sandboxes

__all__ = ["Proven", "proven"]

_SECONDS: Final = 300.0
"""CPU time of one run of a suite, as in mining."""


@dataclass(frozen=True, slots=True)
class Proven:
    """The instances of a set that can judge, and those of which the facts do not hold here."""

    instances: tuple[Instance, ...]
    left_out: tuple[LeftOut, ...] = ()


async def proven(
    settings: Settings, instances: Sequence[Instance], path: Path, report: Report
) -> Proven:
    """Return instances of which the tests that must keep passing are known.

    What facts alone do not say is proven once and kept at `path`; whole rows need no proof.
    """
    bare = [each for each in instances if each.bare]
    if not bare:
        return Proven(tuple(instances))
    kept = ProvenFile(path)
    todo = [each for each in bare if kept.whole(each) is None]
    refuted: dict[str, LeftOut] = {}
    if todo:
        report(
            f"{len(todo)} of {len(instances)} instances are facts alone: which tests must keep "
            f"passing is found out first, once ({path})"
        )
        number = count(1)

        def tell(found: Instance | LeftOut) -> None:
            place = f"[{next(number)}/{len(todo)}]"
            if isinstance(found, LeftOut):
                report(f"{place} {found.instance.instance_id}: left out: {found.why}")
            else:
                kept_too = f"{len(found.pass_to_pass)} other tests must keep passing"
                report(f"{place} {found.instance_id}: proven, {kept_too}")

        async with open_sandboxes(settings) as driver:
            prover = Prover(driver, settings.limits, seconds=_SECONDS)
            with kept.alone():
                found = await prove_facts(todo, prover, kept, jobs=grading_slots(), tell=tell)
        refuted = {each.instance.instance_id: each for each in found}
    settled = [refuted.get(i.instance_id) or (kept.whole(i) if i.bare else i) for i in instances]
    return Proven(
        tuple(each for each in settled if isinstance(each, Instance)),
        tuple(each for each in settled if isinstance(each, LeftOut)),
    )
