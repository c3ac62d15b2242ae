"""What an evaluation is run under, put on record beside its trials."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Final

from turnout import __version__
from turnout.core.govern.revisions import encode_policy
from turnout.core.policies import Policy
from turnout.evals.conditions.machine import this_machine
from turnout.evals.conditions.model import ArmUnder, Conditions, Limits, ModelUsed, TaskSet
from turnout.evals.trials.arms import ArmAsk
from turnout.evals.trials.model import Mode
from turnout.gateway.catalog import Catalog, Deployment
from turnout.gateway.policy.diff import differences, value_text
from turnout.settings import Settings
from turnout.wiring.evaluation.arms import ServedArm
from turnout.wiring.evaluation.local import LocalModels

__all__ = ["Planned", "Under", "conditions_of"]

_MOST_RULES: Final = 2_000
"""Characters of a policy's rules; its digest stands for all of them."""
_SEEDS: Final[Mapping[str, str]] = {
    "hashes of Python in grading": "0",
    "intervals of the report": "turnout eval report",
    "samples of repair": "the number of each candidate",
}


@dataclass(frozen=True, slots=True)
class Planned:
    """Which trials a command is to see to."""

    tasks: TaskSet
    mode: Mode
    strict: bool
    repeats: int
    surface: str
    limits: Limits


@dataclass(frozen=True, slots=True)
class Under:
    """What the arms of an evaluation were resolved to."""

    settings: Settings
    asks: Sequence[ArmAsk]
    served: Sequence[ServedArm]
    """In the order of `asks`."""
    catalog: Catalog
    """As far as it was settled."""
    local: LocalModels


def conditions_of(under: Under, planned: Planned, at: datetime) -> Conditions:
    """Return what a command that began at that moment ran under."""
    settings = under.settings
    return Conditions(
        at=at,
        harness=__version__,
        tasks=planned.tasks,
        mode=planned.mode,
        strict=planned.strict,
        repeats=planned.repeats,
        surface=planned.surface,
        arms=tuple(_arms(under)),
        models=tuple(_model(each, under.local) for each in under.catalog.deployments),
        machine=this_machine(settings.driver),
        limits=replace(planned.limits, test_seconds=settings.agent.own_test_timeout),
        seeds=_SEEDS,
    )


def _arms(under: Under) -> Iterator[ArmUnder]:
    for ask, served in zip(under.asks, under.served, strict=True):
        policy = served.settings.policy
        yield ArmUnder(
            name=ask.name,
            digest=served.arm.digest,
            asked=f"{ask.kind}:{ask.value}" if ask.value else ask.kind,
            policy=policy.name,
            revision=policy.revision,
            policy_digest=_digest(policy),
            rules=_rules(policy),
        )


def _rules(policy: Policy) -> str:
    """Return what a policy says otherwise than one that says nothing, and its objective."""
    said = [
        f"{change.field} {value_text(change.after)}"
        for change in differences(Policy(), replace(policy, egress=Policy().egress))
        if change.field != "objective"
    ]
    told = "; ".join([f"optimize {policy.objective}", *said])
    return told if len(told) <= _MOST_RULES else f"{told[:_MOST_RULES]}…"


def _digest(policy: Policy) -> str:
    plain = replace(policy, name="", revision=0)
    return sha256(encode_policy(plain).encode()).hexdigest()[:12]


def _model(deployment: Deployment, local: LocalModels) -> ModelUsed:
    found = next((each for each in local.files if each.name == deployment.model), None)
    price = deployment.price
    used = ModelUsed(
        deployment.id,
        deployment.model,
        deployment.profile,
        "" if price is None else f"{price.input / 1e6:g}",
        "" if price is None else f"{price.output / 1e6:g}",
    )
    if found is None:
        return used
    quantisation = found.file.removesuffix(".gguf").rpartition("-")[2].upper()
    return replace(
        used,
        file=found.file,
        sha256=found.sha256,
        quantisation=quantisation,
        threads=local.threads,
    )
