"""Whatever a request, a policy, a catalog and the evidence are, a decision keeps to its rules."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from turnout.core.ids import DeploymentId, ModelId
from turnout.core.inference import RoutingAsk
from turnout.core.money import Micros, Price
from turnout.core.policies import EvidenceBar, Policy, PoolRule, SessionCaps, TaskRule
from turnout.core.receipts import Decision
from turnout.gateway.catalog import Catalog, Deployment, Provider, StatedQuality
from turnout.gateway.decide import Decider, decide, none_eligible
from turnout.gateway.evidence import Ailment, Evidence, MeasuredQuality, Sight, Snapshot
from turnout.gateway.exchange import DeclaredTool, InferenceRequest
from turnout.gateway.ports import Holder
from turnout.testing.exchange import PLAIN_REQUEST, deployment

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SHARE = st.floats(0, 1)
IDS = [f"{provider}/{model}" for provider in "xyz" for model in "abc"]
OBJECTIVES = st.sampled_from(["quality", "latency", "cost", "balanced"])
QUALITY = st.builds(
    lambda value, size: {"coding": StatedQuality(value, "test", size)},
    SHARE,
    st.none() | st.integers(1, 10_000),
)
DEPLOYMENTS = st.lists(
    st.builds(
        lambda name, **known: replace(deployment(name), **known),
        st.sampled_from(IDS),
        price=st.none() | st.builds(Price, st.integers(0, 10**9), st.integers(0, 10**9)),
        quality=st.just({}) | QUALITY,
        stated_ttft_ms=st.none() | st.floats(0, 1e6),
        stated_tokens_per_second=st.none() | st.floats(0, 1e6),
        tools=st.sampled_from(["confirmed", "absent", "unknown"]),
        context_window=st.none() | st.integers(1, 20_000),
        json_schema=st.booleans(),
        caching=st.sampled_from(["none", "automatic", "marks"]),
        modalities=st.sampled_from([frozenset(), frozenset({"image"})]),
        region=st.sampled_from(["", "eu"]),
        labels=st.sampled_from([frozenset(), frozenset({"gdpr"})]),
    ),
    unique_by=lambda d: d.id,
    max_size=9,
).map(tuple)
POOLS = st.builds(
    PoolRule,
    models=st.lists(st.sampled_from([*"abc", "x/a"]), max_size=2).map(tuple),
    exclude=st.lists(st.sampled_from([*"abc", "x/a"]), max_size=1).map(tuple),
    providers=st.lists(st.sampled_from("xyz"), max_size=2).map(tuple),
    regions=st.sampled_from([(), ("eu",)]),
    labels=st.sampled_from([(), ("gdpr",)]),
    min_tool_success=st.none() | SHARE,
)
POLICIES = st.builds(
    Policy,
    objective=OBJECTIVES,
    pool=st.just(PoolRule()) | POOLS,
    min_quality=st.just(0.0) | SHARE,
    evidence=st.builds(EvidenceBar, SHARE, st.integers(0, 30), st.none() | st.floats(0, 40)),
    allow_unpriced=st.booleans(),
    session=st.builds(SessionCaps, max_spend=st.none() | st.just(Micros(1))),
    task_rules=st.lists(
        st.builds(TaskRule, st.just("coding"), st.sampled_from("abc").map(ModelId)), max_size=2
    ).map(tuple),
    caching=st.booleans(),
)
REQUESTS = st.builds(
    lambda optimize, **asked: replace(
        PLAIN_REQUEST, ask=RoutingAsk(optimize=optimize, task="coding"), **asked
    ),
    optimize=st.none() | OBJECTIVES,
    model=st.sampled_from(["auto", "auto", "auto", "a", "x/a", "unheard-of"]),
    tools=st.sampled_from([(), (DeclaredTool("read_file"),)]),
    max_tokens=st.none() | st.integers(1, 10_000),
    modalities=st.sampled_from([frozenset(), frozenset({"image"})]),
    wants_json_schema=st.booleans(),
)


def _evidence(name: str, rate: float | None, samples: int, days: float) -> Evidence:
    at = NOW - timedelta(days=days)
    if rate is None:
        return Evidence(DeploymentId(name))
    return Evidence(
        DeploymentId(name),
        tools="confirmed",
        tool_success=rate,
        tool_samples=samples,
        tool_at=at,
        ttft_ms_p50=100.0 * samples,
        tokens_per_second_p50=50.0,
        latency_samples=samples,
        latency_at=at,
    )


EVIDENCE = st.dictionaries(
    st.sampled_from(IDS), st.tuples(st.none() | SHARE, st.integers(1, 60), st.floats(0, 60))
).map(lambda rows: {DeploymentId(name): _evidence(name, *row) for name, row in rows.items()})
MEASURED = st.dictionaries(
    st.sampled_from([*"abc", *IDS]),
    st.builds(
        lambda value, n: {"coding": MeasuredQuality(value, n, NOW, "test")},
        SHARE,
        st.integers(1, 99),
    ),
    max_size=4,
)
AILING = st.dictionaries(
    st.sampled_from(IDS).map(DeploymentId),
    st.builds(
        Ailment,
        st.sampled_from(["open", "resting", "lost"]),
        st.floats(0.1, 600),
        st.sampled_from(["too many failures", "too many requests"]),
    ),
    max_size=3,
)
SIGHTS = st.builds(
    Sight,
    evidence=st.builds(Snapshot, st.just(NOW), EVIDENCE, MEASURED),
    ailing=AILING,
    held=st.none()
    | st.none()
    | st.builds(
        Holder, st.sampled_from("abc").map(ModelId), st.sampled_from(IDS).map(DeploymentId)
    ),
    warm=st.frozensets(st.sampled_from(IDS).map(DeploymentId), max_size=3),
    budget=st.none() | st.integers(-5, 10**7).map(Micros),
    spend_capped=st.booleans(),
)


def catalog_of(deployments: tuple[Deployment, ...]) -> Catalog:
    """Return a catalog of them; provider `z` lacks its key, provider `y` is in Europe."""
    providers = {
        "x": Provider("x", "http://x.test"),
        "y": Provider("y", "http://y.test", region="eu", labels=frozenset({"gdpr"})),
        "z": Provider("z", "http://z.test", unset_key="Z_KEY"),
    }
    return Catalog(providers, deployments)


@given(REQUESTS, POLICIES, DEPLOYMENTS, SIGHTS)
def test_a_decision_is_whole_and_the_same_each_time(
    request_: InferenceRequest, policy: Policy, deployments: tuple[Deployment, ...], sight: Sight
) -> None:
    """Each deployment is judged once; the order holds the eligible ones and no other."""
    catalog = catalog_of(deployments)
    decision = decide(request_, policy, catalog, sight)
    decider = Decider(catalog)
    assert decision == decide(request_, policy, catalog, sight)
    assert decision == decider.decide(request_, policy, sight)
    assert decision == decider.decide(request_, policy, sight)
    assert sorted(c.deployment for c in decision.candidates) == sorted(d.id for d in deployments)
    assert list(decision.order) == [c.deployment for c in decision.candidates if c.dropped is None]
    assert all(c.score is None and c.dropped for c in decision.candidates if c.dropped is not None)
    assert decision.reason.endswith(".")


@given(REQUESTS, POLICIES, DEPLOYMENTS, SIGHTS)
def test_walls_hold_whatever_the_objective(
    request_: InferenceRequest, policy: Policy, deployments: tuple[Deployment, ...], sight: Sight
) -> None:
    """Pool, key, abilities, spend cap, circuit and the open call's model bind every choice."""
    catalog, pool = catalog_of(deployments), policy.pool
    chosen = decide(request_, policy, catalog, sight).order
    capped = policy.session.max_spend is not None or sight.spend_capped
    for d in (d for d in deployments if d.id in chosen):
        provider = catalog.providers[d.provider]
        seen = sight.evidence.of.get(d.id, Evidence(d.id))
        assert not pool.models or {d.model, d.id} & set(pool.models)
        assert not {d.model, d.id} & set(pool.exclude)
        assert not pool.providers or d.provider in pool.providers
        assert not pool.regions or (d.region or provider.region) in pool.regions
        assert set(pool.labels) <= d.labels | provider.labels
        assert not provider.unset_key
        assert not request_.tools or "confirmed" in (d.tools, seen.tools)
        assert request_.modalities <= d.modalities
        assert d.json_schema or not request_.wants_json_schema
        assert d.price is not None or not capped or policy.allow_unpriced
        assert d.id not in sight.ailing or sight.ailing[d.id].state == "lost"
        if request_.model == "auto" and sight.held is not None:
            assert d.model == sight.held.model
        elif pool.min_tool_success is not None:
            assert seen.tool_success is not None
            assert seen.tool_success >= pool.min_tool_success


@given(REQUESTS, POLICIES, DEPLOYMENTS, SIGHTS)
def test_unknown_ranks_last(
    request_: InferenceRequest, policy: Policy, deployments: tuple[Deployment, ...], sight: Sight
) -> None:
    """Where nothing but the objective ranks, scores fall, and none stands behind an unknown one.

    In `balanced` those of known quality come first, each of the two groups so ordered.
    """
    free = replace(sight, ailing={}, warm=frozenset(), held=None)
    policy = replace(policy, task_rules=(), min_quality=0.0)
    decision = decide(request_, policy, catalog_of(deployments), free)
    fits = [c for c in decision.candidates if c.dropped is None]
    known = [c for c in fits if c.score is not None]
    assert fits[: len(known)] == known
    unmeasured = [decision.objective == "balanced" and "quality unknown" in c.note for c in known]
    assert unmeasured == sorted(unmeasured)
    for group in (False, True):
        scores = [
            c.score or 0.0 for c, mine in zip(known, unmeasured, strict=True) if mine is group
        ]
        assert scores == sorted(scores, reverse=True)


@given(REQUESTS, POLICIES, DEPLOYMENTS, st.data())
def test_unknown_is_never_better_than_known(
    request_: InferenceRequest,
    policy: Policy,
    deployments: tuple[Deployment, ...],
    data: st.DataObject,
) -> None:
    """To forget a figure of a deployment never moves it up in the order of an objective."""
    if not deployments:
        return
    policy = replace(policy, task_rules=(), min_quality=0.0)
    place = data.draw(st.integers(0, len(deployments) - 1))
    forgotten = data.draw(
        st.sampled_from([{"quality": {}}, {"price": None}, {"stated_ttft_ms": None}])
    )
    less: list[Deployment] = list(deployments)
    less[place] = replace(less[place], **forgotten)
    before = _place(request_, policy, deployments, deployments[place].id)
    after = _place(request_, policy, tuple(less), deployments[place].id)
    assert after is None or before is None or after >= before


def _place(
    request: InferenceRequest,
    policy: Policy,
    deployments: tuple[Deployment, ...],
    id_: DeploymentId,
) -> int | None:
    order = decide(request, policy, catalog_of(deployments), Sight()).order
    return order.index(id_) if id_ in order else None


@given(REQUESTS, POLICIES, DEPLOYMENTS, SIGHTS)
def test_nobody_eligible_is_an_error_with_every_reason(
    request_: InferenceRequest, policy: Policy, deployments: tuple[Deployment, ...], sight: Sight
) -> None:
    """503, 429 where only time is missing, 403 where a price is; a Retry-After for clients."""
    decision = decide(request_, policy, catalog_of(deployments), sight)
    if decision.order:
        return
    error = none_eligible(decision, sight)
    assert error.status in {403, 429, 503}
    assert (error.status == 403) == (error.code == "price_unknown")
    assert all(str(c.dropped) in error.message for c in decision.candidates)
    assert error.retry_after is None or 1 <= error.retry_after <= 60


@given(REQUESTS, POLICIES, DEPLOYMENTS, SIGHTS)
def test_a_decision_changes_nothing_that_it_sees(
    request_: InferenceRequest, policy: Policy, deployments: tuple[Deployment, ...], sight: Sight
) -> None:
    """The same sight twice, with another decision between, decides the same."""
    decider = Decider(catalog_of(deployments))
    ailing: Mapping[DeploymentId, Ailment] = dict(sight.ailing)
    first: Decision = decider.decide(request_, policy, sight)
    decider.decide(replace(request_, model="auto"), Policy(), Sight())
    assert decider.decide(request_, policy, sight) == first
    assert sight.ailing == ailing
