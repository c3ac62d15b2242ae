"""What a decision looks up of each deployment, put together once for many requests."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import get_args

from turnout.core.ids import DeploymentId, ModelId, ProviderName
from turnout.core.inference import TaskKind
from turnout.core.money import Price
from turnout.core.policies import EvidenceBar, Policy, PoolRule
from turnout.core.receipts import Grounds
from turnout.gateway.catalog import Catalog, Deployment, StatedQuality
from turnout.gateway.decide.pool import outside
from turnout.gateway.evidence import Evidence, MeasuredQuality, Snapshot
from turnout.gateway.measure.interval import wilson

__all__ = ["Quality", "Row", "Table", "build_table", "lower_bound"]

_FEWEST_SAMPLES = 5
"""Tool calls below which a success rate says more about chance than about the deployment."""

_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Quality:
    """What is known of a deployment's quality at one task kind."""

    value: float
    least: float
    """Lower confidence bound: what it is ranked by."""
    grounds: Grounds


@dataclass(frozen=True, slots=True)
class Row:
    """One deployment, as far as requests do not change what is true of it."""

    id: DeploymentId
    model: ModelId
    provider: ProviderName
    outside: str | None
    """Why the pool does not hold it."""
    below: str | None
    """Why the pool does not hold it, by what was measured."""
    unset_key: str
    tools: str | None
    """Why it gets no requests with tools."""
    tool_bar: str | None
    """Why it gets none of those that open a loop."""
    window: int | None
    max_output: int
    json_schema: bool
    modalities: frozenset[str]
    price: Price | None
    ttft_ms: float | None
    tokens_per_second: float | None
    caches: bool
    quality: Mapping[TaskKind, Quality]
    grounds: Mapping[TaskKind, tuple[Grounds, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The rows of a catalog under one pool, one bar and one state of the evidence."""

    pool: PoolRule
    bar: EvidenceBar
    evidence: Snapshot
    rows: tuple[Row, ...]


def build_table(catalog: Catalog, policy: Policy, evidence: Snapshot) -> Table:
    """Return the table of a catalog for a policy and what was measured."""
    rows = tuple(_row(catalog, policy, evidence, d) for d in catalog.deployments)
    return Table(policy.pool, policy.evidence, evidence, rows)


def lower_bound(value: float, samples: int | None) -> float:
    """Return the Wilson bound of a share; without a number of samples, the share itself."""
    return wilson(value, samples).low if samples else value


def _row(catalog: Catalog, policy: Policy, evidence: Snapshot, deployment: Deployment) -> Row:
    seen = evidence.of.get(deployment.id) or Evidence(deployment.id)
    provider = catalog.providers.get(deployment.provider)
    support = deployment.tools if deployment.tools != "unknown" else seen.tools
    quality = _qualities(deployment, evidence)
    common = _common_grounds(seen, evidence.at)
    return Row(
        id=deployment.id,
        model=deployment.model,
        provider=deployment.provider,
        outside=outside(policy.pool, deployment, provider),
        below=_below(policy.pool.min_tool_success, seen),
        unset_key=provider.unset_key if provider else "",
        tools=None if support == "confirmed" else f"tool support {support}",
        tool_bar=_under_the_bar(policy.evidence, seen, evidence.at),
        window=deployment.context_window,
        max_output=deployment.max_output,
        json_schema=deployment.json_schema,
        modalities=deployment.modalities,
        price=deployment.price,
        ttft_ms=_first(seen.ttft_ms_p50, deployment.stated_ttft_ms),
        tokens_per_second=_first(seen.tokens_per_second_p50, deployment.stated_tokens_per_second),
        caches=deployment.caching != "none",
        quality=quality,
        grounds={
            task: (*common, quality[task].grounds) if task in quality else common
            for task in get_args(TaskKind)
        },
    )


def _first(measured: float | None, stated: float | None) -> float | None:
    return stated if measured is None else measured


def _below(least: float | None, seen: Evidence) -> str | None:
    if least is None or (seen.tool_success is not None and seen.tool_success >= least):
        return None
    rate = "unknown" if seen.tool_success is None else f"{seen.tool_success:.2f}"
    return f"outside the pool: its tool success is {rate}, {least:.2f} is asked for"


def _under_the_bar(bar: EvidenceBar, seen: Evidence, now: datetime) -> str | None:
    rate, samples = seen.tool_success, seen.tool_samples
    if samples < bar.min_samples:
        return f"tool success rests on {samples} calls, the policy asks for {bar.min_samples}"
    if rate is None or seen.tool_at is None:
        return None
    days = (now - seen.tool_at).total_seconds() / _DAY
    if bar.max_age_days is not None and days > bar.max_age_days:
        return f"tool success is {days:.1f} days old, the policy takes {bar.max_age_days:g}"
    if samples < _FEWEST_SAMPLES or rate >= bar.min_tool_success:
        return None
    return f"tool success {rate:.2f} is below {bar.min_tool_success:.2f}"


def _qualities(deployment: Deployment, evidence: Snapshot) -> Mapping[TaskKind, Quality]:
    of_model = evidence.quality.get(deployment.model, {})
    measured = {**of_model, **evidence.quality.get(deployment.id, {})}
    found: dict[TaskKind, Quality] = {}
    for task in get_args(TaskKind):
        ours, stated = measured.get(task), deployment.quality.get(task)
        if stated is not None and (ours is None or _is_newer(stated, ours)):
            found[task] = _stated(stated, evidence.at)
        elif ours is not None:
            found[task] = _measured(ours, evidence.at)
    return found


def _is_newer(stated: StatedQuality, measured: MeasuredQuality) -> bool:
    return stated.on is not None and stated.on > measured.at.date()


def _stated(stated: StatedQuality, now: datetime) -> Quality:
    age = None if stated.on is None else max(0, (now.date() - stated.on).days) * int(_DAY)
    grounds = Grounds("quality", stated.value, stated.sample_size, age, stated.source)
    return Quality(stated.value, lower_bound(stated.value, stated.sample_size), grounds)


def _measured(ours: MeasuredQuality, now: datetime) -> Quality:
    grounds = Grounds("quality", ours.value, ours.samples, _age(ours.at, now), ours.source)
    return Quality(ours.value, lower_bound(ours.value, ours.samples), grounds)


def _common_grounds(seen: Evidence, now: datetime) -> tuple[Grounds, ...]:
    grounds = []
    if seen.tool_success is not None and seen.tool_at is not None:
        age = _age(seen.tool_at, now)
        rate = round(seen.tool_success, 4)
        grounds.append(Grounds("tool_success", rate, seen.tool_samples, age, "measured"))
    if seen.ttft_ms_p50 is not None and seen.latency_at is not None:
        age = _age(seen.latency_at, now)
        median = round(seen.ttft_ms_p50, 1)
        grounds.append(Grounds("latency", median, seen.latency_samples, age, "measured"))
    return tuple(grounds)


def _age(at: datetime, now: datetime) -> int:
    return max(0, round((now - at).total_seconds()))
