"""Pool rules, the evidence bar, health, budget, warm caches: each with its reason."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from turnout.core.ids import DeploymentId, ModelId, ProviderName
from turnout.core.inference import Objective, RoutingAsk
from turnout.core.money import Micros, Price
from turnout.core.policies import EvidenceBar, Policy, PoolRule, TaskRule
from turnout.core.receipts import Decision, Grounds
from turnout.gateway.catalog import Catalog, Deployment, Provider, StatedQuality
from turnout.gateway.decide import Decider, decide, mend_of, none_eligible
from turnout.gateway.evidence import Ailment, Evidence, MeasuredQuality, Sight, Snapshot
from turnout.gateway.exchange import DeclaredTool, InferenceRequest
from turnout.gateway.ports import Holder
from turnout.testing.exchange import PLAIN_REQUEST, deployment

NOW = datetime(2026, 3, 1, tzinfo=UTC)
REQUEST = replace(PLAIN_REQUEST, ask=RoutingAsk(optimize="cost", task="coding"))
TOOLED = replace(REQUEST, tools=(DeclaredTool("read_file"),))
A = replace(
    deployment("acme/m"),
    price=Price(100_000, 200_000),
    context_window=128_000,
    region="eu",
    labels=frozenset({"gdpr"}),
)
B = replace(deployment("bolt/m"), price=Price(300_000, 900_000))
C = replace(deployment("corp/n"), price=Price(200_000, 200_000))
PROVIDERS = {
    name: Provider(ProviderName(name), f"http://{name}.test", region=region, labels=labels)
    for name, region, labels in (
        ("acme", "us", frozenset[str]()),
        ("bolt", "us", frozenset({"hipaa"})),
        ("corp", "", frozenset[str]()),
    )
}


def choose(
    policy: Policy,
    sight: Sight | None = None,
    request: InferenceRequest = REQUEST,
    deployments: tuple[Deployment, ...] = (A, B, C),
) -> Decision:
    """Decide with defaults."""
    return decide(request, policy, Catalog(PROVIDERS, deployments), sight or Sight())


def seen(id_: DeploymentId, rate: float, samples: int, days: float = 0.0) -> Evidence:
    """Return evidence of tool use."""
    at = NOW - timedelta(days=days)
    return Evidence(id_, tool_success=rate, tool_samples=samples, tool_at=at)


def sight_of(*evidence: Evidence) -> Sight:
    """Return a sight of nothing but evidence."""
    return Sight(Snapshot(NOW, {each.deployment: each for each in evidence}))


def asking(objective: Objective) -> InferenceRequest:
    """Return a coding request with an objective."""
    return replace(REQUEST, ask=RoutingAsk(optimize=objective, task="coding"))


@pytest.mark.parametrize(
    ("rule", "order"),
    [
        (PoolRule(models=("m",)), ("acme/m", "bolt/m")),
        (PoolRule(models=("bolt/m", "n")), ("corp/n", "bolt/m")),
        (PoolRule(exclude=("acme/m",)), ("corp/n", "bolt/m")),
        (PoolRule(exclude=("m",)), ("corp/n",)),
        (PoolRule(providers=("acme", "corp")), ("acme/m", "corp/n")),
        (PoolRule(regions=("us",)), ("bolt/m",)),
        (PoolRule(regions=("eu",)), ("acme/m",)),
        (PoolRule(labels=("hipaa",)), ("bolt/m",)),
        (PoolRule(labels=("gdpr", "hipaa")), ()),
        (PoolRule(min_context=100_000), ("acme/m",)),
        (PoolRule(max_input_price=200_000), ("acme/m", "corp/n")),
        (PoolRule(max_output_price=200_000), ("acme/m", "corp/n")),
    ],
)
def test_a_pool_is_a_list_or_a_rule(rule: PoolRule, order: tuple[str, ...]) -> None:
    """A new deployment is in by what is stated of it; what is unknown satisfies no rule."""
    decision = choose(Policy(pool=rule))
    assert decision.order == order
    reasons = [c.dropped for c in decision.candidates if c.dropped]
    assert all("the pool" in reason for reason in reasons)


def test_a_pool_by_measured_tool_use_admits_the_measured_alone() -> None:
    """Also for requests without tools, and never an unmeasured one."""
    policy = Policy(pool=PoolRule(min_tool_success=0.9))
    decision = choose(policy, sight_of(seen(A.id, 0.95, 30), seen(B.id, 0.5, 30)))
    reasons = {c.deployment: c.dropped for c in decision.candidates if c.dropped}
    assert decision.order == (A.id,)
    assert reasons[B.id] == "outside the pool: its tool success is 0.50, 0.90 is asked for"
    assert reasons[C.id] == "outside the pool: its tool success is unknown, 0.90 is asked for"


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [
        (Evidence(A.id), "tool success rests on 0 calls, the policy asks for 20"),
        (seen(A.id, 1.0, 19), "tool success rests on 19 calls, the policy asks for 20"),
        (seen(A.id, 0.8, 50), "tool success 0.80 is below 0.90"),
        (seen(A.id, 0.95, 50, days=8), "tool success is 8.0 days old, the policy takes 7"),
        (seen(A.id, 0.95, 50, days=6), None),
    ],
)
def test_the_evidence_bar_is_rate_size_and_age(evidence: Evidence, reason: str | None) -> None:
    """It holds for requests with tools; the mend is to measure."""
    policy = Policy(evidence=EvidenceBar(0.9, 20, 7))
    decision = choose(policy, sight_of(evidence), TOOLED, (A,))
    assert decision.candidates[0].dropped == reason
    assert choose(policy, sight_of(evidence), REQUEST, (A,)).order == (A.id,)
    if reason and "below" not in reason:
        assert mend_of(reason).endswith("`turnout models probe`.")


def test_a_task_rule_is_subject_to_the_evidence_bar() -> None:
    """The rule's model is passed over where its record is poor; it may name a deployment."""
    rule = Policy(task_rules=(TaskRule("coding", ModelId("corp/n")),))
    assert choose(rule, request=TOOLED).order[0] == C.id
    barred = replace(rule, evidence=EvidenceBar(0.9))
    decision = choose(barred, sight_of(seen(C.id, 0.5, 50)), TOOLED)
    assert decision.order == (A.id, B.id)


def test_what_is_sent_must_be_known_to_be_taken() -> None:
    """An image goes only where the catalog says so."""
    request = replace(REQUEST, modalities=frozenset({"image", "file"}))
    eyed = replace(B, modalities=frozenset({"image", "file", "audio"}))
    decision = choose(Policy(), request=request, deployments=(A, eyed))
    assert decision.order == (B.id,)
    assert decision.candidates[1].dropped == "is not known to take file, image input"


@pytest.mark.parametrize("state", ["open", "resting"])
def test_whoever_is_left_alone_is_not_asked(state: str) -> None:
    """Not even by name; the reason says for how long."""
    sight = Sight(ailing={A.id: Ailment(state, 12.4, "8 requests failed in a row")})
    decision = choose(Policy(), sight)
    assert decision.order == (C.id, B.id)
    assert decision.candidates[2].dropped == "8 requests failed in a row; left alone for 12 s more"
    assert choose(Policy(), sight, replace(REQUEST, model="acme/m")).order == ()


def test_an_error_that_time_mends_says_how_much() -> None:
    """503 for an open circuit; 429 where all that could serve asked to be left alone."""
    tired = {A.id: Ailment("open", 12.4, "tired"), B.id: Ailment("resting", 400.0, "full")}
    policy = Policy(pool=PoolRule(models=("m",)))
    error = none_eligible(choose(policy, Sight(ailing=tired)), Sight(ailing=tired))
    assert (error.status, error.code, error.retry_after) == (503, "no_eligible_model", 13)
    full = {A.id: Ailment("resting", 90.0, "full"), B.id: Ailment("resting", 400.0, "full")}
    error = none_eligible(choose(policy, Sight(ailing=full)), Sight(ailing=full))
    assert (error.status, error.code, error.retry_after) == (429, "rate_limit_exceeded", 60)
    assert "Retry-After" in error.mend
    never = none_eligible(choose(Policy(pool=PoolRule(models=("x",)))), Sight())
    assert (never.status, never.retry_after) == (503, None)


def test_what_is_left_to_spend_drops_the_dear_ones() -> None:
    """By what the request is expected to cost."""
    decision = choose(Policy(), Sight(budget=Micros(400)), asking("quality"))
    assert set(decision.order) == {A.id, C.id}
    dropped = decision.candidates[2].dropped
    assert dropped == "expected to cost 750 µUSD, 400 are left to spend"


def test_where_all_are_too_dear_the_cheapest_is_kept() -> None:
    """Whether anything may still be spent is admission's business."""
    assert choose(Policy(), Sight(budget=Micros(-3))).order == (A.id,)
    assert choose(Policy(), Sight(budget=Micros(0)), deployments=(B,)).order == (B.id,)


def test_any_cap_on_spend_needs_a_price() -> None:
    """A key's as well as the session's."""
    unpriced = replace(A, price=None)
    decision = choose(Policy(), Sight(spend_capped=True), deployments=(unpriced,))
    assert decision.candidates[0].dropped == "price unknown under a spend cap"
    error = none_eligible(decision, Sight(spend_capped=True))
    assert (error.status, error.code) == (403, "price_unknown")
    assert "`price`" in error.mend


def test_a_warm_cache_keeps_the_session_at_its_provider() -> None:
    """Among the deployments of the best model; another model it does not win over."""
    caching = replace(B, caching="automatic")
    everyone = (A, caching, C)
    warm = Sight(warm=frozenset({B.id}))
    decision = choose(Policy(), warm, deployments=everyone)
    assert decision.order == (B.id, A.id, C.id)
    assert (decision.caches, decision.kept_warm) == (True, True)
    assert decision.reason == "bolt/m: its prompt cache holds the session, which stays there."
    cold = choose(Policy(caching=False), warm, deployments=everyone)
    assert (cold.order[0], cold.caches, cold.kept_warm) == (A.id, False, False)
    elsewhere = choose(Policy(), Sight(warm=frozenset({C.id})), deployments=everyone)
    assert (elsewhere.order[0], elsewhere.kept_warm) == (A.id, False)


def test_a_warm_cache_does_not_keep_a_session_with_one_that_is_lost() -> None:
    """A cache that cannot be reached saves nothing."""
    sight = Sight(warm=frozenset({B.id}), ailing={B.id: Ailment("lost", 9.0, "not reached")})
    decision = choose(Policy(), sight, deployments=(A, B))
    assert (decision.order, decision.kept_warm) == ((A.id, B.id), False)


def test_an_open_call_outlives_a_pool_by_measurement() -> None:
    """Only walls that are stated break a loop off."""
    held = Sight(held=Holder(ModelId("m"), B.id))
    measured = Policy(pool=PoolRule(min_tool_success=0.9), evidence=EvidenceBar(0.9, 20))
    assert choose(measured, held, TOOLED).order == (B.id, A.id)
    assert choose(Policy(pool=PoolRule(providers=("acme",))), held, TOOLED).order == (A.id,)


@pytest.mark.parametrize(
    ("stated_on", "value"), [(None, 0.6), (date(2026, 1, 1), 0.6), (date(2026, 2, 20), 0.9)]
)
def test_measured_quality_wins_over_what_was_stated_before(
    stated_on: date | None, value: float
) -> None:
    """A stated figure counts again once it is newer; the grounds say which it was."""
    stated = StatedQuality(0.9, "a leaflet", 50, stated_on)
    told = replace(A, quality={"coding": stated})
    measured = MeasuredQuality(0.6, 40, NOW - timedelta(days=10), "turnout eval run t.jsonl")
    sight = Sight(Snapshot(NOW, {}, {"m": {"coding": measured}}))
    (candidate,) = choose(Policy(), sight, asking("quality"), (told,)).candidates
    (grounds,) = candidate.grounds
    assert grounds.value == value
    assert candidate.score is not None
    assert candidate.score < value
    if value == 0.6:
        assert grounds == Grounds("quality", 0.6, 40, 864_000, "turnout eval run t.jsonl")


def test_quality_of_a_deployment_wins_over_that_of_its_model() -> None:
    """Quantised weights at one provider may do worse than the model elsewhere."""
    model = MeasuredQuality(0.9, 400, NOW, "eval")
    own = MeasuredQuality(0.1, 400, NOW - timedelta(days=1), "eval")
    sight = Sight(Snapshot(NOW, {}, {"m": {"coding": model}, A.id: {"coding": own}}))
    assert choose(Policy(), sight, asking("quality"), (A, B)).order == (B.id, A.id)


def test_unknown_quality_ranks_behind_a_floor() -> None:
    """Where the policy asks for quality, speed and price are compared among the known first."""
    known = replace(B, quality={"coding": StatedQuality(0.7, "test", 100)})
    assert choose(Policy(min_quality=0.5), deployments=(A, known)).order == (B.id, A.id)
    assert choose(Policy(), deployments=(A, known)).order == (A.id, B.id)


def test_the_decision_shows_what_each_figure_rests_on() -> None:
    """Rate, samples and age of tool use; median, samples and age of latency."""
    at = NOW - timedelta(seconds=90)
    evidence = replace(
        seen(A.id, 0.98123, 57),
        ttft_ms_p50=312.34,
        tokens_per_second_p50=80.0,
        latency_samples=64,
        latency_at=at,
    )
    (candidate,) = choose(Policy(), sight_of(evidence), deployments=(A,)).candidates
    assert candidate.grounds == (
        Grounds("tool_success", 0.9812, 57, 0, "measured"),
        Grounds("latency", 312.3, 64, 90, "measured"),
    )


def test_a_policys_own_key_stands_in_for_the_catalogs() -> None:
    """The catalog's variable is not needed then, the policy's own is."""
    provider = replace(PROVIDERS["acme"], unset_key="ACME_KEY")
    catalog = Catalog({"acme": provider}, (A,))
    policy = Policy(provider_keys=(("acme", "TEAM_KEY"),))
    assert decide(REQUEST, policy, catalog, Sight()).order == (A.id,)
    unset = Sight(unset_keys={ProviderName("acme"): "TEAM_KEY"})
    decision = decide(REQUEST, policy, catalog, unset)
    assert decision.candidates[0].dropped == "TEAM_KEY is not set"


def test_a_decider_keeps_up_with_policy_and_evidence() -> None:
    """Its tables are those of the policy and the snapshot at hand."""
    decider = Decider(Catalog(PROVIDERS, (A, B, C)))
    bar = Policy(evidence=EvidenceBar(0.9))
    for rate, eligible in ((0.5, 2), (1.0, 3)):
        decision = decider.decide(TOOLED, bar, sight_of(seen(A.id, rate, 50)))
        assert len(decision.order) == eligible
    for models in (("m",), ("n",), ("m", "n")):
        pool = Policy(pool=PoolRule(models=models))
        assert {i.split("/")[1] for i in decider.decide(REQUEST, pool, Sight()).order} == set(
            models
        )
