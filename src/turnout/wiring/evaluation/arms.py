"""Arms as they were asked for, resolved to models and policies that stay the same meanwhile."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256

from turnout.core.govern.revisions import PolicyRevision, default_among, encode_policy
from turnout.core.policies import Policy
from turnout.core.service.orders import OrderLimits
from turnout.core.tasks import SurfaceName
from turnout.errors import ConfigError, UsageError
from turnout.evals.trials.arms import Arm, ArmAsk
from turnout.gateway.catalog import Catalog
from turnout.gateway.config.tables import close_match
from turnout.gateway.policy.ports import PolicyStore
from turnout.settings import Settings

__all__ = ["FrozenPolicies", "Policies", "ServedArm", "check_model", "find_policies", "served_arm"]


@dataclass(frozen=True, slots=True)
class ServedArm:
    """An arm, and the settings that its runs are worked on under."""

    arm: Arm
    settings: Settings
    """With its policy and its model; for a command, those of `auto`."""


@dataclass(frozen=True, slots=True)
class FrozenPolicies:
    """The policies as they were when an evaluation began, beside drafts of its own.

    A `PolicyStore` that never changes: what is applied meanwhile reaches no arm.
    """

    revisions: tuple[PolicyRevision, ...]

    async def add(self, revisions: Sequence[PolicyRevision]) -> None:
        """Refuse: nothing is changed here."""
        del revisions
        raise UsageError("Policies are not changed by an evaluation.")

    async def newest(self) -> Sequence[PolicyRevision]:
        """Return every policy."""
        return self.revisions

    async def history(self, name: str, *, limit: int = 100) -> Sequence[PolicyRevision]:
        """Return the one revision of a policy that is known."""
        return tuple(each for each in self.revisions if each.policy.name == name)[:limit]

    async def get(self, name: str, number: int) -> PolicyRevision | None:
        """Return that revision; None for any other."""
        found = [each for each in self.revisions if each.policy.name == name]
        return next((each for each in found if each.policy.revision == number), None)

    async def count(self) -> int:
        """Return how many there are."""
        return len(self.revisions)


@dataclass(frozen=True, slots=True)
class Policies:
    """What arms are under: policies by the text that names them in an arm."""

    default: Policy
    asked: Mapping[str, Policy]

    def of(self, ask: ArmAsk) -> Policy:
        """Return the policy of an arm."""
        return self.asked[ask.value] if ask.kind == "policy" else self.default

    def frozen(self, at: datetime) -> FrozenPolicies:
        """Return all of them as a store."""
        each = {policy.name: policy for policy in (self.default, *self.asked.values())}
        return FrozenPolicies(tuple(PolicyRevision(p, "evaluation", at) for p in each.values()))


async def find_policies(
    asks: Sequence[ArmAsk], drafts: Mapping[str, Policy], settings: Settings, store: PolicyStore
) -> Policies:
    """Return the policies that arms name, as they are now.

    `drafts` are those of files, by the text that names them; all others are saved or of the
    settings. `ConfigError` where there is none of a name.
    """
    saved = {revision.policy.name: revision.policy for revision in await store.newest()}
    own = {policy.name: policy for policy in settings.policies}
    known = {**own, **saved}
    default = known.get(default_among(known, own), settings.policy)
    asked = {}
    for ask in asks:
        if ask.kind == "policy":
            draft = drafts.get(ask.value)
            asked[ask.value] = (
                await _saved(ask.value, known, store) if draft is None else _apart(draft)
            )
    return Policies(default, asked)


def check_model(ask: ArmAsk, catalog: Catalog) -> None:
    """Refuse (`ConfigError`) an arm that is pinned to a model which is not there."""
    names = {name for each in catalog.deployments for name in (each.model, each.id)}
    if ask.kind == "model" and ask.value not in names:
        raise ConfigError(
            f"The arm {ask.name!r} names the model {ask.value!r}, which no deployment has.",
            mend=close_match(ask.value, sorted(names)),
        )


def served_arm(
    ask: ArmAsk,
    policies: Policies,
    settings: Settings,
    surface: SurfaceName,
    limits: OrderLimits,
) -> ServedArm:
    """Return an arm with what its runs are worked on under."""
    policy = policies.of(ask)
    # What sandboxes reach is the service's affair, and the same for all arms.
    policy = replace(policy, egress=settings.policy.egress)
    under = replace(settings, policy=policy, policies=(policy,))
    if ask.kind == "model":
        under = under.with_model(ask.value)
    agent = under.agent
    facts = (
        encode_policy(replace(policy, name="", revision=0)),
        json.dumps([surface, settings.setup, settings.test_command]),
        repr(limits),
        repr(replace(agent, steps=dict(sorted(agent.steps.items())))),
        json.dumps(sorted(_served_by(ask, settings))),
    )
    return ServedArm(Arm.of(ask, facts), under)


def _served_by(ask: ArmAsk, settings: Settings) -> Iterator[str]:
    """Yield what may serve an arm: one that names its model is the same whatever else there is."""
    for each in settings.catalog.deployments:
        if ask.kind != "model" or ask.value in {each.model, each.id}:
            yield each.id
    if not settings.catalog.deployments and settings.endpoint is not None:
        yield settings.endpoint.model or "" if ask.kind != "model" else ask.value


async def _saved(text: str, known: Mapping[str, Policy], store: PolicyStore) -> Policy:
    name, _, number = text.rpartition("@")
    if name and number.isdecimal():
        revision = await store.get(name, int(number))
        if revision is None:
            raise ConfigError(
                f"The policy {name!r} has no revision {number}.",
                mend=f"`turnout policy history {name}` lists them.",
            )
        return _apart(revision.policy)
    if text not in known:
        raise ConfigError(
            f"There is no policy {text!r}.",
            mend=f"{close_match(text, sorted(known))} A draft is named by its file, FILE.toml.",
        )
    return known[text]


def _apart(policy: Policy) -> Policy:
    """Return a policy under a name that no policy in force has."""
    digest = sha256(encode_policy(policy).encode()).hexdigest()
    return replace(policy, name=f"{policy.name}-{digest[:8]}")
