"""Filter, then rank; everything that was seen is on the decision."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from turnout.core.ids import DeploymentId, ModelId, ProviderName
from turnout.core.inference import Objective, RoutingAsk
from turnout.core.money import Micros, Price
from turnout.core.policies import EvidenceBar, Policy, PoolRule, SessionCaps, TaskRule
from turnout.core.receipts import Decision
from turnout.gateway.catalog import Catalog, Deployment, Provider, StatedQuality
from turnout.gateway.decide import decide, mend_of
from turnout.gateway.evidence import Ailment, Evidence, Sight, Snapshot
from turnout.gateway.exchange import DeclaredTool, InferenceRequest
from turnout.gateway.ports import Holder
from turnout.testing.exchange import PLAIN_REQUEST, deployment

NOW = datetime(2026, 1, 1, tzinfo=UTC)
REQUEST = replace(PLAIN_REQUEST, ask=RoutingAsk(task="coding"))
TOOLED = replace(REQUEST, tools=(DeclaredTool("read_file"),))


def quality(value: float, size: int | None = None) -> dict[str, StatedQuality]:
    """Return a stated quality for coding."""
    return {"coding": StatedQuality(value, "test", size)}


STRONG = replace(
    deployment("acme/strong"),
    price=Price(3_000_000, 15_000_000),
    quality=quality(0.8, 100),
    stated_ttft_ms=900.0,
    stated_tokens_per_second=30.0,
)
FAST = replace(
    deployment("bolt/fast"),
    price=Price(500_000, 1_000_000),
    quality=quality(0.5, 100),
    stated_ttft_ms=100.0,
    stated_tokens_per_second=200.0,
)
CHEAP = replace(
    deployment("corp/cheap"),
    price=Price(0, 0),
    quality=quality(0.3, 100),
    stated_ttft_ms=2_000.0,
    stated_tokens_per_second=10.0,
)
BLANK = deployment("dark/blank")
ALL = (BLANK, STRONG, FAST, CHEAP)


def choose(
    request: InferenceRequest = REQUEST,
    policy: Policy | None = None,
    deployments: tuple[Deployment, ...] = ALL,
    evidence: Evidence | None = None,
    held: Holder | None = None,
) -> Decision:
    """Decide with defaults."""
    seen = {evidence.deployment: evidence} if evidence else {}
    catalog = Catalog(deployments=deployments)
    sight = Sight(Snapshot(NOW, seen), held=held)
    return decide(request, policy or Policy(), catalog, sight)


def asking(objective: Objective) -> InferenceRequest:
    """Return a coding request with an objective."""
    return replace(REQUEST, ask=RoutingAsk(optimize=objective, task="coding"))


def dropped(decision: Decision) -> dict[str, str]:
    """Return why each deployment was left out."""
    return {c.deployment: c.dropped for c in decision.candidates if c.dropped}


@pytest.mark.parametrize(
    ("objective", "order"),
    [
        ("quality", ["acme/strong", "bolt/fast", "corp/cheap", "dark/blank"]),
        ("latency", ["bolt/fast", "acme/strong", "corp/cheap", "dark/blank"]),
        ("cost", ["corp/cheap", "bolt/fast", "acme/strong", "dark/blank"]),
    ],
)
def test_each_objective_has_its_own_order(objective: Objective, order: list[str]) -> None:
    """The best comes first, and what is unknown last."""
    assert list(choose(asking(objective)).order) == order


def test_balanced_weighs_quality_latency_and_cost() -> None:
    """Half of the score is quality, a quarter each the nearness to the fastest and cheapest."""
    decision = choose(asking("balanced"))
    scores = {c.deployment: c.score for c in decision.candidates}
    assert decision.order == ("bolt/fast", "acme/strong", "corp/cheap", "dark/blank")
    # Quality at least 0.404, the fastest, and a price of 1,000 where the least is nothing.
    assert scores["bolt/fast"] == pytest.approx(0.404 / 2 + 1 / 4 + 1 / 1001 / 4, abs=5e-4)
    assert scores["dark/blank"] is None


def test_unmeasured_quality_ranks_last_in_a_balance() -> None:
    """However fast and cheap it is: nobody has seen it solve anything."""
    rocket = replace(FAST, id=DeploymentId("z/rocket"), price=Price(0, 0), quality={})
    decision = choose(asking("balanced"), deployments=(rocket, STRONG, CHEAP))
    assert decision.order == ("acme/strong", "corp/cheap", "z/rocket")
    assert choose(asking("latency"), deployments=(rocket, STRONG)).order[0] == "z/rocket"


def test_the_request_overrides_the_policys_objective() -> None:
    """The policy's objective is only the default."""
    policy = Policy(objective="cost")
    assert choose(policy=policy).objective == "cost"
    assert choose(asking("quality"), policy).objective == "quality"


def test_few_samples_count_for_less_than_many() -> None:
    """The lower confidence bound ranks, not the share itself."""
    lucky = replace(STRONG, id=DeploymentId("x/lucky"), quality=quality(1.0, 2))
    proven = replace(STRONG, id=DeploymentId("y/proven"), quality=quality(0.7, 500))
    decision = choose(asking("quality"), deployments=(lucky, proven))
    assert decision.order[0] == "y/proven"


def test_equal_quality_goes_to_the_cheaper() -> None:
    """A tie is settled by cost, and an unknown price loses it."""
    dear = replace(STRONG, id=DeploymentId("a/dear"))
    unpriced = replace(STRONG, id=DeploymentId("b/unpriced"), price=None)
    cheap = replace(STRONG, id=DeploymentId("c/cheap"), price=Price(1, 1))
    decision = choose(asking("quality"), deployments=(dear, unpriced, cheap))
    assert decision.order == ("c/cheap", "a/dear", "b/unpriced")


def test_live_figures_win_over_stated_ones() -> None:
    """What was measured here counts more than what was written down."""
    slow_now = Evidence(FAST.id, ttft_ms_p50=60_000.0, tokens_per_second_p50=1.0)
    assert choose(asking("latency"), evidence=slow_now).order[0] == "acme/strong"


def test_a_small_limit_makes_the_first_token_matter() -> None:
    """Expected output is at most what the request allows."""
    eager = replace(CHEAP, id=DeploymentId("e/eager"), stated_ttft_ms=10.0)
    request = replace(asking("latency"), max_tokens=1)
    assert choose(request, deployments=(FAST, eager)).order[0] == "bolt/fast"
    assert choose(request, deployments=(STRONG, eager)).order[0] == "e/eager"


@pytest.mark.parametrize("support", ["absent", "unknown"])
def test_tools_need_confirmed_support(support: str) -> None:
    """A deployment that may not call tools gets no request with tools."""
    unsure = replace(STRONG, tools=support)
    assert dropped(choose(TOOLED, deployments=(unsure,))) == {
        "acme/strong": f"tool support {support}"
    }
    assert choose(REQUEST, deployments=(unsure,)).order == ("acme/strong",)


def test_a_probe_confirms_what_was_unknown() -> None:
    """Evidence stands in where nothing was stated, and never against it."""
    unsure, never = replace(STRONG, tools="unknown"), replace(STRONG, tools="absent")
    seen = Evidence(STRONG.id, tools="confirmed")
    assert choose(TOOLED, deployments=(unsure,), evidence=seen).order
    assert not choose(TOOLED, deployments=(never,), evidence=seen).order


def test_what_does_not_fit_the_context_is_dropped() -> None:
    """Input and reserved output together must fit."""
    small = replace(STRONG, context_window=5_000, max_output=4_096)
    assert not choose(deployments=(small,)).order
    assert choose(replace(REQUEST, max_tokens=4_000), deployments=(small,)).order
    assert "5096 tokens" in choose(deployments=(small,)).reason


def test_a_schema_needs_a_server_that_enforces_it() -> None:
    """A request for a JSON schema goes nowhere else."""
    loose = replace(STRONG, json_schema=False)
    request = replace(REQUEST, wants_json_schema=True)
    assert choose(request, deployments=(loose, FAST)).order == ("bolt/fast",)


def test_no_price_no_service_under_a_spend_cap() -> None:
    """A cap in money holds only where money is counted, unless the policy says otherwise."""
    capped = Policy(session=SessionCaps(max_spend=Micros(1)))
    assert dropped(choose(policy=capped)) == {"dark/blank": "price unknown under a spend cap"}
    assert len(choose(policy=replace(capped, allow_unpriced=True)).order) == 4


def test_a_key_that_is_not_set_drops_the_deployment() -> None:
    """Even where the request names it; the others serve."""
    provider = Provider(ProviderName("acme"), "http://acme.test/v1", unset_key="ACME_KEY")
    catalog = Catalog({provider.name: provider}, (STRONG, FAST))
    decision = decide(REQUEST, Policy(), catalog, Sight())
    assert decision.order == ("bolt/fast",)
    assert dropped(decision) == {"acme/strong": "ACME_KEY is not set"}
    named = decide(replace(REQUEST, model="strong"), Policy(), catalog, Sight())
    assert (named.order, dropped(named)["acme/strong"]) == ((), "ACME_KEY is not set")


def test_what_was_not_reached_a_moment_ago_is_tried_last() -> None:
    """It stays eligible; its note and the reason say why it comes last."""
    ailing = {STRONG.id: Ailment("lost", 9.0, "not reached a moment ago")}
    catalog = Catalog(deployments=ALL)
    decision = decide(asking("quality"), Policy(), catalog, Sight(ailing=ailing))
    assert decision.order == ("bolt/fast", "corp/cheap", "dark/blank", "acme/strong")
    assert decision.candidates[3].note.startswith("not reached a moment ago; quality")
    assert decision.reason == (
        "bolt/fast: the highest known quality for coding of 4 eligible, 0.50 over 100 tasks "
        "(test); "
        "acme/strong: not reached a moment ago."
    )


def test_every_reason_that_a_setting_lifts_has_its_mend() -> None:
    """The three ways out of an unknown price, and the key."""
    unpriced = mend_of("x/m: price unknown under a spend cap")
    for setting in ("`price`", "`allow_unpriced = true`", "`max_spend_usd`"):
        assert setting in unpriced
    assert mend_of("x/m: ACME_KEY is not set").startswith("Export")
    assert mend_of("x/m: outside the pool") == ""


def test_the_pool_is_a_wall_even_for_a_named_model() -> None:
    """Naming a model does not widen the policy."""
    policy = Policy(pool=PoolRule(("fast",)))
    assert choose(policy=policy).order == ("bolt/fast",)
    named = choose(replace(REQUEST, model="strong"), policy)
    assert named.order == ()
    assert dropped(named)["acme/strong"] == "outside the pool"


def test_a_poor_record_with_tools_drops_a_deployment() -> None:
    """The bar holds for requests with tools, once there are enough calls to judge by."""
    policy = Policy(evidence=EvidenceBar(min_tool_success=0.9))
    poor = Evidence(STRONG.id, tool_success=0.5, tool_samples=20, tool_at=NOW)
    assert choose(TOOLED, policy, (STRONG,), poor).order == ()
    assert choose(REQUEST, policy, (STRONG,), poor).order
    assert choose(TOOLED, policy, (STRONG,), replace(poor, tool_samples=2)).order


def test_the_quality_floor_spares_what_is_unknown() -> None:
    """Speed and price are sought above the floor; quality is sought without one."""
    policy = Policy(min_quality=0.6)
    assert choose(asking("latency"), policy).order == ("acme/strong", "dark/blank")
    assert len(choose(asking("quality"), policy).order) == 4


def test_a_task_rule_comes_first_if_it_is_eligible() -> None:
    """The rule's model leads, the objective orders the rest; another kind knows no rule."""
    policy = Policy(objective="quality", task_rules=(TaskRule("coding", ModelId("cheap")),))
    assert choose(policy=policy).order[:2] == ("corp/cheap", "acme/strong")
    unable = replace(CHEAP, tools="absent")
    assert choose(TOOLED, policy, (STRONG, unable)).order == ("acme/strong",)
    other = replace(REQUEST, ask=RoutingAsk(task="chat"))
    assert "rule" not in choose(other, policy).reason


@pytest.mark.parametrize("name", ["strong", "acme/strong"])
def test_a_named_model_comes_alone(name: str) -> None:
    """Fallback is another stage's business."""
    decision = choose(replace(REQUEST, model=name))
    assert decision.order == ("acme/strong",)
    assert set(dropped(decision).values()) == {"not asked for"}
    assert not decision.sticky


@pytest.mark.cases
def test_an_open_call_stays_on_its_model() -> None:
    """A tool result never lands on a model that did not ask for it."""
    held = Holder(ModelId("strong"), DeploymentId("other/strong"))
    twin = replace(STRONG, id=DeploymentId("other/strong"), price=None)
    decision = choose(
        replace(TOOLED, ask=RoutingAsk(optimize="latency", task="coding")),
        deployments=(*ALL, twin),
        held=held,
    )
    assert decision.order == ("other/strong", "acme/strong")
    assert decision.sticky


def test_evidence_bars_do_not_move_an_open_call() -> None:
    """A loop is not broken off because its model did badly meanwhile."""
    held = Holder(ModelId("strong"), STRONG.id)
    poor = Evidence(STRONG.id, tool_success=0.1, tool_samples=99, tool_at=NOW)
    policy = Policy(evidence=EvidenceBar(min_tool_success=0.9), min_quality=0.99)
    assert choose(TOOLED, policy, ALL, poor, held).order == (STRONG.id,)


def test_a_named_model_wins_over_an_open_call() -> None:
    """Whoever names a model gets it."""
    held = Holder(ModelId("strong"), STRONG.id)
    decision = choose(replace(REQUEST, model="fast"), held=held)
    assert (decision.order, decision.sticky) == ((FAST.id,), False)


def test_the_reason_says_why_nothing_is_eligible() -> None:
    """An empty order is explained by counts."""
    decision = choose(TOOLED, deployments=(replace(STRONG, tools="unknown"),))
    assert decision.reason == "No deployment is eligible: 1 × tool support unknown."
    assert choose(deployments=()).reason.endswith("the catalog is empty.")


def test_the_reason_names_the_winner_and_what_for() -> None:
    """One sentence for people."""
    reason = choose(asking("quality")).reason
    assert reason == (
        "acme/strong: the highest known quality for coding of 4 eligible, "
        "0.80 over 100 tasks (test)."
    )
    blank = choose(asking("cost"), deployments=(BLANK,)).reason
    assert blank == (
        "dark/blank: no price is known of any eligible deployment; in the catalog's order."
    )


def test_a_latency_that_is_half_known_says_which_half() -> None:
    """Whoever sees a measured first token is not told that nothing is known."""
    halves = (
        ({"stated_ttft_ms": 900.0}, "latency unknown: no speed measured, answers too short"),
        ({"stated_tokens_per_second": 9.0}, "latency unknown: no first token measured"),
        ({}, "latency unknown"),
    )
    for known, said in halves:
        for objective in ("latency", "balanced"):
            decision = choose(asking(objective), deployments=(replace(BLANK, **known),))
            (candidate,) = decision.candidates
            assert said in candidate.note.split(", cost")[0]
            assert not candidate.note.split(said)[1].startswith(":")
    reason = choose(asking("latency"), deployments=(BLANK,)).reason
    assert "no latency (first token and speed together) is known of any eligible" in reason
