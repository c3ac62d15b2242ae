"""The pages of governance on stores in memory, an engine and a model that answers at once."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.unit.web.console.seen import Console, Person

from turnout.core.clock import SystemClock
from turnout.core.govern.audit import AuditFilter, AuditLine, AuditPage
from turnout.core.govern.connections import Connection
from turnout.core.govern.evidence import QualityResult
from turnout.core.govern.keys import KeyRecord
from turnout.core.ids import DeploymentId, ProviderName
from turnout.core.json import JsonObject
from turnout.core.money import Price
from turnout.core.policies import Policy
from turnout.gateway.catalog import Catalog, Provider
from turnout.gateway.evaluations.desk import EvaluationDesk
from turnout.gateway.evaluations.preview import Prospect
from turnout.gateway.evidence import ProbeResult
from turnout.gateway.exchange import ServerEvent, UpstreamError, UpstreamReply
from turnout.gateway.keys.desk import KeyDesk
from turnout.gateway.measure.examine import ExamLimits
from turnout.gateway.measure.live import LiveEvidence
from turnout.gateway.measure.probing import ProbeDesk, Prober
from turnout.gateway.measure.settle import kept_result
from turnout.gateway.notices.desk import WebhookDesk
from turnout.gateway.policy.book import PolicyBook
from turnout.gateway.policy.desk import PolicyDesk
from turnout.gateway.wire.shapes import SPOKEN
from turnout.testing.books import MemoryBooks, MemoryKeys
from turnout.testing.connections import FakeConnections
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, engine_of
from turnout.testing.memory.evaluations import MemoryEvaluationsStore
from turnout.testing.memory.noticed import MemoryNotices, MemoryUsage, MemoryWebhooks
from turnout.testing.stores import MemoryPoliciesStore, MemoryProbesStore
from turnout.web.console.govern.parts import ConnectionsKnown, GovernParts, ModelsKnown, Noticed
from turnout.web.console.govern.sections import govern_sections
from turnout.web.console.govern.views.models import ModelsSeen
from turnout.web.runs.streams import Streams

HOSTILE = "<script>alert(1)</script>\u202e'\""
"""What a page must show and never obey."""
ANSWER = f"It is {HOSTILE}"


class OneAnswer:
    """An upstream that gives the same answer to everything, or none."""

    def __init__(self) -> None:
        self.away = False
        self.goes_on = asyncio.Event()
        """A stream waits for it after its first piece."""
        self.goes_on.set()

    async def complete(
        self, provider: Provider, path: str, body: JsonObject, headers: Mapping[str, str]
    ) -> UpstreamReply:
        """Answer."""
        if self.away:
            raise UpstreamError("is not there", status=503, body=None)
        message = {"role": "assistant", "content": ANSWER}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        said: JsonObject = {"id": "c-1", "choices": [choice], "usage": usage}
        return UpstreamReply(said, 7)

    async def stream(
        self, provider: Provider, path: str, body: JsonObject, headers: Mapping[str, str]
    ) -> AsyncGenerator[ServerEvent, None]:
        """Answer in two pieces."""
        if self.away:
            raise UpstreamError("is not there", status=503, body=None)
        for text, finish in ((ANSWER[:6], None), (ANSWER[6:], "stop")):
            delta: JsonObject = {"role": "assistant", "content": text}
            choice: JsonObject = {"index": 0, "delta": delta, "finish_reason": finish}
            yield ServerEvent("", {"id": "c-1", "choices": [choice]})
            await self.goes_on.wait()
        usage: JsonObject = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        yield ServerEvent("", {"id": "c-1", "choices": [], "usage": usage})

    async def models(self, provider: Provider) -> tuple[str, ...]:
        """List none."""
        return ()

    async def close(self) -> None:
        """Hold nothing."""


def catalog() -> Catalog:
    """Return two deployments, one of them dear."""
    big = replace(deployment("p/big"), price=Price(3_000_000, 15_000_000), context_window=128_000)
    small = replace(deployment("p/small"), price=Price(100_000, 400_000))
    name = ProviderName("p")
    return Catalog({name: Provider(name, "http://p.example.org/v1")}, (big, small))


@dataclass
class Governed:
    """The console with its pages of governance, and what is behind them."""

    own: tuple[Policy, ...] = ()
    """Policies of the configuration file."""
    doubted: str = ""
    """What is said against the cap on spend of every key."""
    upstream: OneAnswer = field(default_factory=OneAnswer)
    books: MemoryBooks = field(default_factory=MemoryBooks)
    notices: MemoryNotices = field(default_factory=MemoryNotices)
    hooks: MemoryWebhooks = field(default_factory=MemoryWebhooks)
    connections: FakeConnections = field(default_factory=FakeConnections)
    known: Mapping[str, Connection] = field(default_factory=dict)
    serves: bool = True
    """Whether models are served in this process."""
    results: Path = Path("/nowhere")
    """Folder with the results of evaluations."""

    def __post_init__(self) -> None:
        """Join the rooms."""
        clock, models = SystemClock(), catalog()
        self.catalog = models
        self.evidence = LiveEvidence(clock)
        store = MemoryPoliciesStore()
        book = PolicyBook(self.own, store)
        self.policies = PolicyDesk(store, models, clock, own=self.own, changed=book.refresh)
        self.keys = KeyDesk(MemoryKeys(), clock)
        setup = GatewaySetup(book=book, evidence=self.evidence)
        self.engine = engine_of(models, self.upstream, self.books, setup)
        prospect = Prospect((Policy(),), models, self.evidence.snapshot(), lambda _: {})
        self.evaluations = EvaluationDesk(
            MemoryEvaluationsStore(),
            clock,
            lambda: prospect,
            learn=self.evidence.know_qualities,
        )
        self.probed = MemoryProbesStore()
        prober = Prober(models, self.upstream, SPOKEN, self.probed, clock)
        self.probes = ProbeDesk(prober, self.evidence.learn, ExamLimits(seconds=5, retries=0))
        self.console = Console(more=tuple(govern_sections(self._parts(clock))))

    def person(self, key: str = "boss") -> Person:
        """Return somebody who has signed in."""
        return self.console.person(key)

    @property
    def changes(self) -> list[tuple[str, str, str]]:
        """Who did what to what."""
        return [(each.actor, each.action, each.subject) for each in self.console.audit.kept]

    def _parts(self, clock: SystemClock) -> GovernParts:
        async def doubt(_: KeyRecord) -> str:
            return self.doubted

        usage = MemoryUsage(self.books.receipts.receipts)
        return GovernParts(
            policies=self.policies,
            keys=self.keys,
            noticed=Noticed(
                usage, self.notices, self.notices, _Audit(self), WebhookDesk(self.hooks, clock)
            ),
            engine=self.engine if self.serves else None,
            models=ModelsKnown(self._seen, self.probes, self._probed),
            connections=ConnectionsKnown(self.connections.tools, self.known),
            evaluations=self.evaluations,
            results=self.results,
            clock=clock,
            streams=Streams(),
            doubt=doubt,
        )

    def _seen(self) -> ModelsSeen:
        circuits = self.evidence.circuits
        return ModelsSeen(
            self.catalog,
            self.evidence.snapshot(),
            datetime.now(UTC),
            circuits.ailing(),
            standings=self.probes.standings(),
            newest=circuits.newest(),
        )

    async def _probed(self, wanted: DeploymentId) -> ProbeResult | None:
        found = self.catalog.deployment(wanted)
        assert found is not None
        return await kept_result(self.probed, self.catalog.providers[found.provider], found)


class _Audit:
    """Reads back what the console has put on record."""

    def __init__(self, governed: Governed) -> None:
        self._governed = governed

    async def add(self, change) -> None:
        """Keep a change."""
        await self._governed.console.audit.add(change)

    async def page(self, wanted: AuditFilter, *, before: int | None, limit: int) -> AuditPage:
        """Return all of one actor."""
        kept = self._governed.console.audit.kept
        lines = [AuditLine(number, each) for number, each in enumerate(kept, 1)]
        chosen = [x for x in reversed(lines) if wanted.actor in (None, x.change.actor)]
        return AuditPage(tuple(chosen[:limit]), None)


def quality(subject: str, solved: int, tried: int, *, days_old: float = 1.0) -> QualityResult:
    """Return what an evaluation of coding tasks showed of a model."""
    at = datetime.now(UTC) - timedelta(days=days_old)
    return QualityResult(subject, "coding", solved, tried, at, f"mined tasks {HOSTILE}")
