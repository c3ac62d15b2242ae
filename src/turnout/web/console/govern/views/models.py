"""The catalog with what is known of each deployment, how well, and since when."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from turnout.core.ids import DeploymentId
from turnout.core.inference import TaskKind
from turnout.core.money import Micros, Price, format_usd
from turnout.core.policies import Policy
from turnout.errors import ModelUnavailableError
from turnout.gateway.catalog import Catalog, Deployment, ToolSupport
from turnout.gateway.decide.table import Quality, build_table
from turnout.gateway.evidence import Ailment, Evidence, ProbeResult, Snapshot
from turnout.gateway.measure.circuits import Newest
from turnout.gateway.measure.interval import wilson
from turnout.gateway.measure.probing import ProbeStanding
from turnout.web.console.govern.views.words import (
    age_between,
    age_text,
    count_text,
    milliseconds_text,
    share_text,
)

__all__ = [
    "Figure",
    "Health",
    "ModelView",
    "ModelsSeen",
    "ProbeView",
    "model_views",
    "probe_view",
]

_OLD_DAYS = 90
_DAY = 86_400


@dataclass(frozen=True, slots=True)
class ModelsSeen:
    """All that is known of the models at one moment."""

    catalog: Catalog
    evidence: Snapshot
    now: datetime
    ailing: Mapping[DeploymentId, Ailment] = field(default_factory=dict)
    failures: Mapping[DeploymentId, ModelUnavailableError] = field(default_factory=dict)
    """Those that could not be asked when the service began."""
    standings: Mapping[DeploymentId, ProbeStanding] = field(default_factory=dict)
    newest: Mapping[DeploymentId, Newest] = field(default_factory=dict)
    """How the newest request to each ended that was asked since the service began."""


@dataclass(frozen=True, slots=True)
class Health:
    """Whether a deployment is asked like any other."""

    state: Literal["well", "unasked", "failing", "ailing", "unusable"]
    text: str

    @property
    def said(self) -> str:
        """What the state is called."""
        return "not asked yet" if self.state == "unasked" else self.state


@dataclass(frozen=True, slots=True)
class Figure:
    """One thing that is known, and what it rests on."""

    name: str
    value: str
    bounds: str
    """The 95 % interval of a share; empty where there is none to give."""
    basis: str
    """Sample size, age and source."""
    old: bool = False
    """Whether it is so old that somebody should measure anew."""


@dataclass(frozen=True, slots=True)
class ModelView:
    """One deployment."""

    id: DeploymentId
    model: str
    provider: str
    upstream_name: str
    where: str
    """Region and labels; empty where none are stated."""
    price: str
    window: str
    tools: ToolSupport
    health: Health
    qualities: tuple[Figure, ...]
    measures: tuple[Figure, ...]
    standing: ProbeStanding | None

    @property
    def probing(self) -> bool:
        """Whether a probe of it is under way."""
        return self.standing is not None and self.standing.state == "running"

    @property
    def failed_probe(self) -> ProbeStanding | None:
        """Its newest probe, where that came to nothing; what an older one showed still counts."""
        standing = self.standing
        return standing if standing is not None and standing.state == "failed" else None


@dataclass(frozen=True, slots=True)
class ProbeView:
    """What a deployment's newest probe showed."""

    at: datetime
    detail: str
    checks: tuple[tuple[str, str, str], ...]
    """Name, `passed of tried`, and what went wrong the last time."""
    notes: tuple[str, ...]


def model_views(seen: ModelsSeen) -> Sequence[ModelView]:
    """Return every deployment of the catalog, in its order."""
    rows = build_table(seen.catalog, Policy(), seen.evidence).rows
    return tuple(
        _view(seen, deployment, row.quality, row.unset_key)
        for deployment, row in zip(seen.catalog.deployments, rows, strict=True)
    )


def probe_view(result: ProbeResult) -> ProbeView:
    """Return what is shown of a probe."""
    examined = result.examined
    notes = [
        f"required tool choice {'enforced' if result.enforces_tool_choice else 'not enforced'}",
        f"JSON schema {'enforced' if result.json_schema else 'not enforced'}",
    ]
    if result.calls_in_text:
        notes.append("tool calls are left in the message text and read from there")
    if examined is not None and examined.cut_short:
        notes.append(f"cut short: {examined.cut_short}")
    checks = () if examined is None else examined.checks
    return ProbeView(
        at=result.at,
        detail=result.detail,
        checks=tuple((c.name, f"{c.passed} of {c.tried}", c.detail) for c in checks),
        notes=tuple(notes),
    )


def _view(
    seen: ModelsSeen, deployment: Deployment, known: Mapping[TaskKind, Quality], unset_key: str
) -> ModelView:
    provider = seen.catalog.providers.get(deployment.provider)
    region = deployment.region or (provider.region if provider else "")
    labels = sorted(deployment.labels | (provider.labels if provider else frozenset()))
    evidence = seen.evidence.of.get(deployment.id) or Evidence(deployment.id)
    window = deployment.context_window
    return ModelView(
        id=deployment.id,
        model=deployment.model,
        provider=deployment.provider,
        upstream_name=deployment.upstream_name,
        where=", ".join(filter(None, [region, *labels])),
        price="unknown" if deployment.price is None else _price_text(deployment.price),
        window="unknown" if window is None else f"{window:,} tokens",
        tools=deployment.tools if deployment.tools != "unknown" else evidence.tools,
        health=_health(seen, deployment, unset_key),
        qualities=tuple(_quality(task, quality) for task, quality in known.items()),
        measures=tuple(_measures(evidence, seen.now)),
        standing=seen.standings.get(deployment.id),
    )


def _price_text(price: Price) -> str:
    return f"{_usd(price.input)} in, {_usd(price.output)} out per million tokens" + (
        ", more for long prompts" if price.tiers else ""
    )


def _usd(amount: int) -> str:
    return format_usd(Micros(amount)) if amount else "$0"


def _health(seen: ModelsSeen, deployment: Deployment, unset_key: str) -> Health:
    if unset_key:
        return Health("unusable", f"{unset_key} is not set")
    ailment = seen.ailing.get(deployment.id)
    if ailment is not None:
        wait = f"for {age_text(ailment.seconds)}" if ailment.seconds >= 1 else "for a moment"
        how = "asked last" if ailment.state == "lost" else "not asked"
        return Health("ailing", f"{how} {wait}: {ailment.why}")
    newest, standing = seen.newest.get(deployment.id), seen.standings.get(deployment.id)
    since = None if newest is None else newest.seconds
    if standing is not None and standing.state != "running":
        probed = (seen.now - standing.at).total_seconds()
        if since is None or probed <= since:
            return _probed(standing, age_text(probed))
    if newest is not None and newest.failure:
        ago = age_text(newest.seconds)
        return Health("failing", f"its newest request failed {ago} ago: {newest.failure}")
    if newest is not None:
        return Health("well", f"answered {age_text(newest.seconds)} ago")
    failure = seen.failures.get(deployment.id)
    if failure is not None and deployment.tools == "unknown":
        return Health("failing", f"could not be asked at the start: {failure.message}")
    evidence = seen.evidence.of.get(deployment.id)
    if evidence is None or not (evidence.latency_at or evidence.tool_at):
        return Health("unasked", "takes requests; nothing has asked it yet")
    return Health("well", "takes requests; it answered before the service began")


def _probed(standing: ProbeStanding, ago: str) -> Health:
    if standing.state == "failed":
        return Health("failing", f"its probe failed {ago} ago: {standing.detail}")
    return Health("well", f"answered its probe {ago} ago")


def _quality(task: str, quality: Quality) -> Figure:
    grounds = quality.grounds
    samples, age = grounds.samples, grounds.age_seconds
    bounds = ""
    if samples:
        interval = wilson(quality.value, samples)
        bounds = f"{share_text(interval.low)} to {share_text(interval.high)}"
    basis = [
        "sample size not stated" if samples is None else f"n = {count_text(samples, 'task')}",
        "date not stated" if age is None else f"{age_text(age)} old",
        grounds.source,
    ]
    old = age is not None and age > _OLD_DAYS * _DAY
    return Figure(task, share_text(quality.value), bounds, ", ".join(basis), old)


def _measures(evidence: Evidence, now: datetime) -> Sequence[Figure]:
    found = []
    rate, at, n = evidence.tool_success, evidence.tool_at, evidence.tool_samples
    if rate is not None and at is not None:
        interval = wilson(rate, n)
        bounds = f"{share_text(interval.low)} to {share_text(interval.high)}"
        basis = f"n = {count_text(n, 'call')}, newest {age_between(at, now)} ago"
        found.append(Figure("tool success", share_text(rate), bounds, basis))
    first, slow, seen_at = evidence.ttft_ms_p50, evidence.ttft_ms_p95, evidence.latency_at
    if first is not None and seen_at is not None:
        value = f"p50 {milliseconds_text(first)}"
        value += "" if slow is None else f", p95 {milliseconds_text(slow)}"
        n = evidence.latency_samples
        basis = f"n = {count_text(n, 'answer')}, streamed or short, "
        basis += f"newest {age_between(seen_at, now)} ago"
        found.append(Figure("first token", value, "", basis))
    if evidence.tokens_per_second_p50 is not None:
        found.append(Figure("speed", f"{evidence.tokens_per_second_p50:.1f} tokens/s", "", ""))
    return found
