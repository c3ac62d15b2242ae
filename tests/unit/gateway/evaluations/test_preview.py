"""Whom requests go to before and after an evaluation is applied."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from turnout.core.govern.evidence import Evaluation, Score
from turnout.core.ids import ModelId, ProviderName
from turnout.core.money import Micros, Price
from turnout.core.policies import Policy, PoolRule
from turnout.errors import NotFoundError
from turnout.gateway.catalog import Catalog, Deployment, Provider
from turnout.gateway.evaluations.desk import EvaluationDesk
from turnout.gateway.evaluations.preview import Preview, Prospect
from turnout.gateway.evidence import Snapshot
from turnout.gateway.measure.live import LiveEvidence
from turnout.testing.clock import FrozenClock
from turnout.testing.exchange import deployment
from turnout.testing.memory.evaluations import MemoryEvaluationsStore

AT = datetime(2026, 1, 1, tzinfo=UTC)


def priced(name: str, micros: int) -> Deployment:
    """Return a deployment that costs something."""
    return replace(deployment(name), price=Price(Micros(micros), Micros(micros)))


CHEAP, DEAR = priced("p/cheap", 100_000), priced("p/dear", 9_000_000)
CATALOG = Catalog({ProviderName("p"): Provider(ProviderName("p"), "http://h/v1")}, (CHEAP, DEAR))
DEAR_WINS = Evaluation(
    "e1", "coding", "hidden", AT, "set", (Score("cheap", 10, 40), Score("dear", 30, 40))
)
CHEAP_WINS = replace(DEAR_WINS, id="e2", scores=(Score("cheap", 38, 40),))


def unset(policy: Policy) -> Mapping[ProviderName, str]:
    """Say that every key is set."""
    del policy
    return {}


class Room:
    """A desk, and the evidence of a gateway in its process."""

    def __init__(self, *policies: Policy, catalog: Catalog = CATALOG) -> None:
        prospect = Prospect(policies or (Policy(),), catalog, Snapshot(at=AT), unset)
        self.live = LiveEvidence(FrozenClock())
        self.desk = EvaluationDesk(
            MemoryEvaluationsStore(),
            FrozenClock(),
            lambda: prospect,
            learn=self.live.know_qualities,
        )


def chosen(preview: Preview) -> dict[str, tuple[str | None, str | None]]:
    """Return who serves before and after, by objective."""
    return {route.objective: (route.before, route.after) for route in preview.routes}


async def test_an_evaluation_flips_who_is_asked_for_quality() -> None:
    """Without one the cheaper is; the reason cites it. Looking at it changes nothing."""
    room = Room()
    preview = await room.desk.preview(DEAR_WINS)
    assert chosen(preview) == {
        "quality": (CHEAP.id, DEAR.id),
        "latency": (CHEAP.id, CHEAP.id),
        "cost": (CHEAP.id, CHEAP.id),
        "balanced": (CHEAP.id, CHEAP.id),
    }
    assert [route.objective for route in preview.routes if route.changes] == ["quality"]
    (quality, *_) = preview.routes
    assert "0.75 over 40 tasks (evaluation e1, hidden tests: set)" in quality.reason
    assert (await room.desk.applied(), room.live.snapshot().quality) == ((), {})


async def test_what_is_applied_counts_at_once_and_is_taken_back_whole() -> None:
    """What counted before counts again; who applied it and when is kept."""
    room = Room()
    assert (await room.desk.apply(DEAR_WINS, "ann")).changed
    assert not (await room.desk.apply(DEAR_WINS, "bob")).changed
    applied = await room.desk.apply(CHEAP_WINS, "ann")
    assert chosen(applied.preview)["quality"] == (DEAR.id, CHEAP.id)
    first, second = await room.desk.applied()
    assert (first.author, second.applied_at) == ("ann", FrozenClock().now())
    assert room.live.snapshot().quality["cheap"]["coding"].value == 38 / 40
    undone = await room.desk.undo("e2")
    assert chosen(undone)["quality"] == (CHEAP.id, DEAR.id)
    assert room.live.snapshot().quality["cheap"]["coding"].value == 10 / 40
    await room.desk.undo("e1")
    assert room.live.snapshot().quality == {}


async def test_what_was_measured_otherwise_is_forgotten_and_told() -> None:
    """Models that saw the tests are not ranked against models that did not."""
    room = Room()
    await room.desk.apply(DEAR_WINS, "ann")
    visible = replace(CHEAP_WINS, id="e3", mode="visible")
    preview = await room.desk.preview(visible)
    assert [result.subject for result in preview.forgotten] == ["dear"]
    assert [result.subject for result in preview.counts] == ["cheap"]


async def test_each_policy_decides_within_its_own_pool() -> None:
    """And only task kinds are shown for which something changes."""
    narrow = Policy(name="narrow", pool=PoolRule(models=(ModelId("cheap"),)))
    preview = await Room(Policy(), narrow).desk.preview(DEAR_WINS)
    of = {(r.policy, r.after) for r in preview.routes if r.objective == "quality"}
    assert of == {("default", DEAR.id), ("narrow", CHEAP.id)}
    assert {route.task for route in preview.routes} == {"coding"}


async def test_models_that_nobody_deploys_are_named() -> None:
    """Their figures are kept all the same."""
    gone = replace(DEAR_WINS, scores=(Score("gone", 1, 2), Score("p/dear", 1, 2)))
    assert (await Room().desk.preview(gone)).unknown == ("gone",)


async def test_where_no_model_takes_tools_requests_without_them_are_shown() -> None:
    """Such models get no others."""
    bare = tuple(replace(each, tools="absent") for each in (CHEAP, DEAR))
    room = Room(catalog=replace(CATALOG, deployments=bare))
    assert chosen(await room.desk.preview(DEAR_WINS))["quality"] == (CHEAP.id, DEAR.id)


async def test_only_what_is_applied_can_be_taken_back() -> None:
    """The error says where to look."""
    with pytest.raises(NotFoundError, match="e9") as refused:
        await Room().desk.undo("e9")
    assert "turnout eval apply" in refused.value.mend
