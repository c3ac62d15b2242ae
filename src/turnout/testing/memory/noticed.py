"""Usage, tools, happenings and webhooks in memory; they satisfy the same ports as the stores."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime

from turnout.core.govern.happenings import Happening, HappeningKind
from turnout.core.govern.toolwatch import OutsideTool, PolicyDay, SeenTool, ToolHit, ToolReport
from turnout.core.govern.usage import (
    UsageFigures,
    UsageGroup,
    UsageQuery,
    UsageReport,
    UsageRow,
)
from turnout.core.govern.webhooks import Webhook, WebhookState
from turnout.core.ids import RequestId
from turnout.core.money import Micros
from turnout.core.receipts import Receipt
from turnout.errors import NotFoundError, StoreError

__all__ = ["MemoryNotices", "MemoryUsage", "MemoryWebhooks"]


class MemoryUsage:
    """Adds receipts up one by one, as a person would."""

    def __init__(self, receipts: Mapping[RequestId, Receipt]) -> None:
        """`receipts` may grow."""
        self._receipts = receipts

    async def usage(self, query: UsageQuery) -> UsageReport:
        """Return the groups of a query and their total."""
        asked = [one for one in self._receipts.values() if _counts(query, one)]
        groups: dict[tuple[str | None, ...], list[Receipt]] = defaultdict(list)
        for one in asked:
            groups[tuple(_value(one, name) for name in query.by)].append(one)
        rows = [UsageRow(group, _figures(members)) for group, members in groups.items()]
        rows.sort(key=lambda row: (-row.figures.cost, -row.figures.requests))
        return UsageReport(tuple(rows[: query.limit]), _figures(asked), len(rows))


def _counts(query: UsageQuery, receipt: Receipt) -> bool:
    return (
        (query.since is None or receipt.at >= query.since)
        and (query.until is None or receipt.at < query.until)
        and (query.session is None or receipt.session == query.session)
        and (query.key is None or receipt.key == query.key)
        and (query.project is None or receipt.project == query.project)
    )


def _value(receipt: Receipt, group: UsageGroup) -> str | None:
    decision, routing = receipt.decision, receipt.routing
    last = receipt.attempts[-1].deployment if receipt.attempts else None
    values: dict[UsageGroup, str | None] = {
        "session": receipt.session,
        "key": receipt.key,
        "project": receipt.project,
        "policy": receipt.policy or None,
        "model": routing.model if routing else None,
        "deployment": routing.deployment if routing else last,
        "objective": decision.objective if decision else None,
        "task": decision.task if decision else None,
        "call_kind": receipt.call_kind,
        "shape": receipt.shape,
        "day": receipt.at.astimezone(UTC).date().isoformat(),
    }
    return values[group]


def _figures(receipts: Sequence[Receipt]) -> UsageFigures:
    own = [one for one in receipts if one.operation == "answer" and one.replay_of is None]
    latencies = [one.latency_ms for one in own if one.status == "ok"]
    first_tokens = [one.ttft_ms for one in own if one.ttft_ms is not None]
    return UsageFigures(
        requests=len(receipts),
        refused=sum(one.status == "refused" for one in receipts),
        failed=sum(one.status == "failed" for one in receipts),
        truncated=sum(one.status == "truncated" for one in receipts),
        cancelled=sum(one.status == "cancelled" for one in receipts),
        unknown=sum(one.status == "unknown" for one in receipts),
        input_tokens=sum(one.usage.input_tokens for one in receipts),
        output_tokens=sum(one.usage.output_tokens for one in receipts),
        cached_tokens=sum(one.usage.cache_read_input_tokens for one in receipts),
        cost=Micros(sum(one.cost_micros or 0 for one in receipts)),
        unpriced=sum(
            one.cost_micros is None and (one.routing is not None or one.status == "unknown")
            for one in receipts
        ),
        fallbacks=sum(one.routing is not None and one.routing.fallback for one in receipts),
        repaired=sum(bool(one.repairs) for one in receipts),
        latency_p50_ms=_percentile(latencies, 50),
        latency_p95_ms=_percentile(latencies, 95),
        ttft_p50_ms=_percentile(first_tokens, 50),
        ttft_p95_ms=_percentile(first_tokens, 95),
    )


def _percentile(values: Iterable[int], percent: int) -> int | None:
    """Return the smallest value that `percent` of all values do not exceed."""
    ordered = sorted(values)
    return next(
        (v for rank, v in enumerate(ordered, 1) if 100 * rank >= percent * len(ordered)), None
    )


@dataclass(slots=True)
class MemoryNotices:
    """What was noticed, as it was written."""

    seen: list[SeenTool] = field(default_factory=list)
    outside: list[OutsideTool] = field(default_factory=list)
    happenings: dict[str, Happening] = field(default_factory=dict)
    """By id, oldest first."""
    days: list[PolicyDay] = field(default_factory=list)
    """What a test says of requests with tools, for the reports."""
    broken: bool = False
    """Whether writes fail."""

    async def write(
        self,
        seen: Sequence[SeenTool],
        outside: Sequence[OutsideTool],
        happened: Sequence[Happening],
    ) -> int:
        """Keep everything, and return how much happened that was not known."""
        if self.broken:
            raise StoreError("The store is broken.")
        self.seen += seen
        self.outside += outside
        new = {one.id: one for one in happened if one.id not in self.happenings}
        self.happenings.update(new)
        return len(new)

    async def inventory(
        self, *, limit: int, project: str | None = None, key: str | None = None
    ) -> Sequence[SeenTool]:
        """Return what was declared, by key: tools that are new to it first."""
        found: dict[tuple[str, str, str], SeenTool] = {}
        for one in self.seen:
            name = (one.project, one.key, one.tool)
            old = found.get(name)
            found[name] = one if old is None else _sum(old, one)
        wanted = [
            one
            for one in found.values()
            if project in {None, one.project} and key in {None, one.key}
        ]
        wanted.sort(key=lambda one: (one.project, one.key, one.tool))
        wanted.sort(key=lambda one: one.first_at, reverse=True)
        return tuple(wanted[:limit])

    async def report(self, policy: str, *, since: date, today: date) -> ToolReport:
        """Return how a policy's list fits what was declared from `since` to `today`."""
        between = (since.isoformat(), today.isoformat())
        outside = [
            o for o in self.outside if o.policy == policy and between[0] <= o.day <= between[1]
        ]
        days = [seen for seen in self.days if since <= seen.day <= today]
        return ToolReport(policy, since, today, tuple(_hits(outside)), tuple(days))

    async def newest(
        self,
        *,
        limit: int,
        kinds: Sequence[HappeningKind] = (),
        key: str | None = None,
        since: datetime | None = None,
    ) -> Sequence[Happening]:
        """Return what was written last, newest first; without `kinds` of every kind."""
        found = [
            one
            for one in reversed(self.happenings.values())
            if (not kinds or one.kind in kinds)
            and key in {None, one.key}
            and (since is None or one.at >= since)
        ]
        return tuple(found[:limit])


def _sum(old: SeenTool, new: SeenTool) -> SeenTool:
    return replace(
        old,
        last_at=max(old.last_at, new.last_at),
        requests=old.requests + new.requests,
        calls=old.calls + new.calls,
    )


def _hits(outside: Iterable[OutsideTool]) -> list[ToolHit]:
    hits: dict[tuple[str, str], ToolHit] = {}
    for one in sorted(outside, key=lambda o: o.day):
        day = date.fromisoformat(one.day)
        old = hits.get((one.key, one.tool), ToolHit(one.key, one.tool, 0, 0, day, one.last_at))
        hits[one.key, one.tool] = replace(
            old,
            served=old.served + one.served,
            refused=old.refused + one.refused,
            last_at=max(old.last_at, one.last_at),
        )
    return sorted(hits.values(), key=lambda hit: (-hit.served - hit.refused, hit.tool))


class MemoryWebhooks:
    """Webhooks to which nothing is sent."""

    def __init__(self) -> None:
        self._states: dict[str, WebhookState] = {}

    async def add(self, webhook: Webhook, at: datetime) -> None:
        """Keep a webhook; `StoreError` where its id is taken."""
        if webhook.id in self._states:
            raise StoreError(f"There already is a webhook {webhook.id}.")
        self._states[webhook.id] = WebhookState(webhook, at, None, None, "", None, 0, 0)

    async def remove(self, webhook_id: str) -> None:
        """Forget a webhook; `NotFoundError` where there is none."""
        if self._states.pop(webhook_id, None) is None:
            raise NotFoundError(f"There is no webhook {webhook_id!r}.")

    async def again(self, webhook_id: str, at: datetime) -> bool:
        """Forget that a webhook has failed; `NotFoundError` where there is none."""
        del at
        state = self._states.get(webhook_id)
        if state is None:
            raise NotFoundError(f"There is no webhook {webhook_id!r}.")
        self._states[webhook_id] = replace(state, paused_until=None)
        return state.paused_until is not None

    def fail(self, webhook_id: str, why: str, *, at: datetime, again_at: datetime) -> None:
        """Have a delivery fail."""
        state = self._states[webhook_id]
        self._states[webhook_id] = replace(
            state, failed_at=at, failure=why, paused_until=again_at, waiting=1
        )

    async def all(self) -> Sequence[WebhookState]:
        """Return every webhook, oldest first."""
        return tuple(self._states.values())
