"""What the arms of an evaluation are run under."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from turnout.core.govern.revisions import PolicyRevision
from turnout.core.ids import ModelId
from turnout.core.policies import EgressPolicy, Policy, PoolRule
from turnout.core.service.orders import OrderLimits
from turnout.errors import ConfigError, UsageError
from turnout.evals.trials.arms import read_arms
from turnout.gateway.catalog import Catalog
from turnout.settings import load_settings
from turnout.wiring.evaluation.arms import FrozenPolicies, check_model, find_policies, served_arm
from turnout.wiring.sources import local_catalog

AT = datetime(2026, 1, 1, tzinfo=UTC)
SAVED = Policy(name="saved", revision=2, pool=PoolRule(models=("m",)))
OLDER = replace(SAVED, revision=1, pool=PoolRule(models=("n",)))
DRAFT = Policy(name="default", pool=PoolRule(models=("draft",)))


class Store(FrozenPolicies):
    """Knows an older revision, too."""

    async def get(self, name, number):
        """Return it, or the newest."""
        older = PolicyRevision(OLDER, "me", AT)
        return older if (name, number) == ("saved", 1) else await super().get(name, number)


STORE = Store((PolicyRevision(SAVED, "me", AT),))


@pytest.fixture
def settings(tmp_path):
    """Return settings that nothing is set in."""
    return load_settings(environment={"TURNOUT_HOME": str(tmp_path)}, directory=tmp_path)


async def served(settings, *texts, drafts=None, limits=None, surface="guide"):
    """Return arms as they are run."""
    asks = read_arms(texts)
    policies = await find_policies(asks, drafts or {}, settings, STORE)
    return [served_arm(a, policies, settings, surface, limits or OrderLimits()) for a in asks]


async def test_an_arm_is_under_the_policy_that_it_names(settings):
    """The newest revision, an older one, a draft; without a name the one in force."""
    arms = await served(
        settings,
        "auto",
        "policy:saved",
        "policy:saved@1",
        "policy:d.toml",
        drafts={"d.toml": DRAFT},
    )
    pools = [arm.settings.policy.pool.models for arm in arms]
    assert pools == [(), ("m",), ("n",), ("draft",)]
    names = [arm.settings.policy.name for arm in arms]
    assert names[:2] == ["default", "saved"]
    assert len(set(names)) == 4
    assert len({arm.arm.digest for arm in arms}) == 4


async def test_the_policies_of_an_evaluation_are_a_store_that_never_changes(settings):
    """With what the arms name in it, and nothing else."""
    asks = read_arms(["auto", "policy:d.toml"])
    policies = await find_policies(asks, {"d.toml": DRAFT}, settings, STORE)
    frozen = policies.frozen(AT)
    assert {each.policy.pool.models for each in await frozen.newest()} == {(), ("draft",)}
    assert await frozen.count() == 2
    assert (await frozen.history("default"))[0].policy.pool.models == ()
    assert await frozen.get("default", 9) is None
    with pytest.raises(UsageError):
        await frozen.add(())


async def test_a_pinned_model_works_at_every_step(settings):
    """Under the policy in force."""
    (arm,) = await served(settings, "model:m")
    assert {step.model for step in arm.settings.agent.steps.values()} == {ModelId("m")}
    assert arm.settings.policy.name == "default"


async def test_what_a_sandbox_reaches_is_the_same_for_every_arm(settings):
    """Whatever its policy says."""
    open_ = replace(DRAFT, egress=EgressPolicy(allow=("host.example",), packages=True))
    (arm,) = await served(settings, "policy:d.toml", drafts={"d.toml": open_})
    assert arm.settings.policy.egress == settings.policy.egress


@pytest.mark.parametrize(
    "changed",
    [
        {"limits": OrderLimits(max_seconds=9.0)},
        {"surface": "shell"},
        {"drafts": {"d.toml": replace(DRAFT, pool=PoolRule(models=("other",)))}},
    ],
)
async def test_an_arm_that_is_run_otherwise_is_another_one(settings, changed):
    """Its results are none of the old one's."""
    asked = {"drafts": {"d.toml": DRAFT}}
    (first,) = await served(settings, "policy:d.toml", **asked)
    (same,) = await served(settings, "policy:d.toml", **asked)
    (other,) = await served(settings, "policy:d.toml", **{**asked, **changed})
    assert first.arm == same.arm != other.arm


@pytest.mark.parametrize("text", ["policy:savd", "policy:saved@9", "policy:none@1"])
async def test_a_policy_that_is_not_there_is_named(settings, text):
    """With what would find it."""
    with pytest.raises(ConfigError) as caught:
        await served(settings, text)
    assert caught.value.mend


async def test_a_pinned_arm_stays_the_same_whatever_other_models_there_are(settings):
    """Those that are routed are others then: they might have been served by them."""
    one = replace(settings, catalog=local_catalog("m", "http://h/v1", "absent"))
    more = local_catalog("n", "http://i/v1", "absent", "local-2")
    both = replace(
        one,
        catalog=Catalog(
            {**one.catalog.providers, **more.providers},
            (*one.catalog.deployments, *more.deployments),
        ),
    )
    (auto, pinned), (other, same) = [await served(each, "auto", "model:m") for each in (one, both)]
    assert pinned.arm == same.arm
    assert auto.arm != other.arm


def test_a_model_that_is_not_there_is_refused_by_its_arm():
    """With those that are; by its model or by the deployment it may be named."""
    catalog = local_catalog("big", "http://127.0.0.1:1", "confirmed")
    (deployment,) = catalog.deployments
    for name in ("big", deployment.id):
        check_model(*read_arms([f"model:{name}"]), catalog)
    with pytest.raises(ConfigError, match="The arm 'model:bigg' names the model 'bigg'") as caught:
        check_model(*read_arms(["model:bigg"]), catalog)
    assert "big" in caught.value.mend
