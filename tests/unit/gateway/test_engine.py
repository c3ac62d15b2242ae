"""The engine writes one receipt for every request, whatever becomes of it."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace

import pytest

from turnout.core.ids import ProviderName, RequestId, SessionId
from turnout.core.json import JsonObject
from turnout.core.money import Micros, Price
from turnout.core.policies import Policy, SessionCaps
from turnout.core.receipts import Receipt
from turnout.errors import GatewayError, StoreError
from turnout.gateway.catalog import Catalog, Provider
from turnout.gateway.exchange import (
    Caller,
    ServerEvent,
    StreamDelta,
    StreamEnd,
    UpstreamError,
    UpstreamReply,
)
from turnout.gateway.measure.live import LiveEvidence
from turnout.gateway.stages.attempts.fallback import Limits
from turnout.testing.books import MemoryBooks
from turnout.testing.clock import FrozenClock
from turnout.testing.exchange import PLAIN_REQUEST, deployment
from turnout.testing.gateway import GatewaySetup, engine_of
from turnout.testing.stores import MemoryReceiptsStore

CALLER, ID, SESSION = Caller("k"), RequestId("req-1"), SessionId("s")
CATALOG = Catalog(
    providers={ProviderName("p"): Provider(ProviderName("p"), "http://nowhere/v1")},
    deployments=(replace(deployment("p/m"), price=Price(1_000_000, 1_000_000)),),
)
WHOLE: JsonObject = {
    "choices": [{"index": 0, "message": {"content": "Hi."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 10, "completion_tokens": 5},
}
CHUNKS: tuple[JsonObject, ...] = (
    {"choices": [{"index": 0, "delta": {"content": "Hi."}}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
)


@dataclass
class ScriptedUpstream:
    """Answers at once; fails with the errors it is given first; waits where told to."""

    errors: list[UpstreamError] = field(default_factory=list)
    hold: bool = False
    closed: int = 0

    async def complete(
        self, _: Provider, __: str, ___: JsonObject, ____: Mapping[str, str]
    ) -> UpstreamReply:
        """Fail, wait for ever, or answer."""
        if self.errors:
            raise self.errors.pop(0)
        if self.hold:
            await asyncio.Event().wait()
        return UpstreamReply(WHOLE, 1)

    async def stream(
        self, _: Provider, __: str, ___: JsonObject, ____: Mapping[str, str]
    ) -> AsyncGenerator[ServerEvent, None]:
        """Yield the chunks; wait for ever after the first where told to."""
        try:
            for chunk in CHUNKS:
                yield ServerEvent("", chunk)
                if self.hold:
                    await asyncio.Event().wait()
        finally:
            self.closed += 1

    async def models(self, _: Provider) -> tuple[str, ...]:
        """List nothing."""
        return ()

    async def close(self) -> None:
        """Have nothing to close."""


class SlowReceipts(MemoryReceiptsStore):
    """Writes once it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.go, self.fails = asyncio.Event(), asyncio.Event(), 0

    async def add(self, receipt: Receipt) -> None:
        """Wait for `go`, then write, or fail as often as told to."""
        self.asked.set()
        await self.go.wait()
        if self.fails:
            self.fails -= 1
            raise StoreError("The disk is full.")
        await super().add(receipt)


class BrokenReceipts(MemoryReceiptsStore):
    """Cannot write until its disk has room."""

    full = True

    async def add(self, receipt: Receipt) -> None:
        """Fail."""
        if self.full:
            raise StoreError("The disk is full.")
        await super().add(receipt)


@dataclass
class Rig:
    """An engine and everything behind it."""

    upstream: ScriptedUpstream = field(default_factory=ScriptedUpstream)
    receipts: MemoryReceiptsStore = field(default_factory=MemoryReceiptsStore)
    policy: Policy = field(default_factory=Policy)

    def __post_init__(self) -> None:
        self.books = MemoryBooks(self.receipts)
        self.observed: list[Receipt] = []
        self.clock = FrozenClock()
        self.evidence = LiveEvidence(self.clock)
        setup = GatewaySetup(
            self.policy,
            limits=Limits(),
            clock=self.clock,
            evidence=self.evidence,
            on_receipt=self.observed.append,
        )
        self.engine = engine_of(CATALOG, self.upstream, self.books, setup)

    def written(self) -> Mapping[RequestId, Receipt]:
        """Return all receipts."""
        return self.receipts.receipts


async def test_a_served_request_is_answered_once_its_receipt_is_written() -> None:
    """No answer leaves before it."""
    receipts = SlowReceipts()
    rig = Rig(receipts=receipts)
    asking = asyncio.create_task(rig.engine.complete(CALLER, PLAIN_REQUEST, ID))
    await receipts.asked.wait()
    assert not asking.done()
    receipts.go.set()
    completion = await asking
    assert completion.report.cost_micros == 15
    assert rig.written()[ID].status == "ok"


async def test_the_end_of_a_stream_waits_for_the_receipt() -> None:
    """The pieces do not."""
    receipts = SlowReceipts()
    rig = Rig(receipts=receipts)
    async with aclosing(rig.engine.stream(CALLER, PLAIN_REQUEST, ID)) as parts:
        assert isinstance(await anext(parts), StreamDelta)
        ending = asyncio.ensure_future(anext(parts))
        await receipts.asked.wait()
        assert not ending.done()
        receipts.go.set()
        assert isinstance(await ending, StreamEnd)


async def test_a_receipt_that_cannot_be_written_fails_the_request() -> None:
    """An answer that is not on record is not given."""
    rig = Rig(receipts=BrokenReceipts())
    with pytest.raises(StoreError):
        await rig.engine.complete(CALLER, PLAIN_REQUEST, ID)


async def test_a_paid_receipt_is_written_when_there_is_room_again() -> None:
    """Once; until then nothing is ready, and what cost nothing is not kept."""
    receipts = BrokenReceipts()
    rig = Rig(receipts=receipts)
    for n in range(3):
        with pytest.raises(StoreError):
            await rig.engine.complete(CALLER, PLAIN_REQUEST, RequestId(f"req-{n}"))
    assert not rig.engine.writable
    receipts.full = False
    for _ in range(100):
        await asyncio.sleep(0)
    assert rig.engine.writable
    assert [receipt.cost_micros for receipt in rig.written().values()] == [15]
    assert len(rig.observed) == 3
    await rig.engine.close()


async def test_receipts_are_tried_once_more_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    """What is lost is told, with what it cost."""
    receipts = BrokenReceipts()
    rig = Rig(receipts=receipts)
    with pytest.raises(StoreError):
        await rig.engine.complete(CALLER, PLAIN_REQUEST, ID)
    await rig.engine.close()
    assert "The receipt of req-1, key 'k', 15 micro-USD, could not be written" in caplog.text


async def test_a_receipt_is_written_whose_caller_left_before_it_failed() -> None:
    """Nobody heard that the store could not take it."""
    receipts = SlowReceipts()
    rig = Rig(receipts=receipts)
    asking = asyncio.create_task(rig.engine.complete(CALLER, PLAIN_REQUEST, ID))
    await receipts.asked.wait()
    receipts.fails = 1
    asking.cancel()
    await asyncio.wait({asking})
    receipts.go.set()
    await rig.engine.close()
    assert rig.written()[ID].cost_micros == 15
    assert len(rig.books.closings) == 1


async def test_no_model_is_paid_while_nothing_can_be_written() -> None:
    """What is still to be written finds out when there is room again."""
    receipts = BrokenReceipts()
    rig = Rig(receipts=receipts)
    with pytest.raises(StoreError):
        await rig.engine.complete(CALLER, PLAIN_REQUEST, ID)
    rig.upstream.errors.append(UpstreamError("must not be asked", status=400))
    with pytest.raises(StoreError):
        await rig.engine.complete(CALLER, PLAIN_REQUEST, ID)
    receipts.full = False
    with pytest.raises(GatewayError) as refused:
        await rig.engine.complete(CALLER, PLAIN_REQUEST, ID)
    assert (refused.value.status, refused.value.code) == (503, "store_unavailable")
    rig.upstream.errors.clear()
    await rig.engine.complete(CALLER, PLAIN_REQUEST, RequestId("req-2"))


async def test_a_cancelled_request_is_on_record_with_an_estimate() -> None:
    """Even where it is cancelled again while that is written."""
    receipts = SlowReceipts()
    policy = Policy(session=SessionCaps(max_requests=9))
    rig = Rig(ScriptedUpstream(hold=True), receipts, policy)
    request = replace(PLAIN_REQUEST, session=SESSION)
    asking = asyncio.create_task(rig.engine.complete(CALLER, request, ID))
    await asyncio.sleep(0)
    for _ in range(2):
        asking.cancel()
        await receipts.asked.wait()
    receipts.go.set()
    await rig.engine.close()
    receipt = rig.written()[ID]
    assert asking.cancelled()
    assert (receipt.status, receipt.usage.estimated, receipt.cost_micros) == (
        "cancelled",
        True,
        1_000,
    )
    assert await rig.books.totals("k", SESSION) == (1, 1_000)


async def test_closing_a_stream_closes_the_upstream_and_records_it() -> None:
    """A client that goes away leaves nothing running."""
    rig = Rig(ScriptedUpstream(hold=True))
    async with aclosing(rig.engine.stream(CALLER, PLAIN_REQUEST, ID)) as parts:
        await anext(parts)
    assert rig.upstream.closed == 1
    assert rig.written()[ID].status == "cancelled"


async def test_a_failed_request_costs_nothing_and_frees_its_reservation() -> None:
    """It still counts as a request of the session."""
    errors = [UpstreamError("x", status=500) for _ in range(2)]
    policy = Policy(session=SessionCaps(max_spend=Micros(5_000)))
    rig = Rig(ScriptedUpstream(errors), policy=policy)
    with pytest.raises(GatewayError):
        await rig.engine.complete(CALLER, replace(PLAIN_REQUEST, session=SESSION), ID)
    assert rig.written()[ID].cost_micros == 0
    assert len(rig.written()[ID].attempts) == 2
    assert await rig.books.totals("k", SESSION) == (1, 0)
    assert rig.clock.slept == [0.5]


async def test_what_an_answer_shows_becomes_evidence() -> None:
    """The wait for a short answer stands for the time to its first token."""
    rig = Rig()
    await rig.engine.complete(CALLER, PLAIN_REQUEST, ID)
    (seen,) = rig.evidence.snapshot().of.values()
    assert (seen.deployment, seen.latency_samples) == ("p/m", 1)


async def test_receipts_are_read_by_their_own_key_only() -> None:
    """Another caller's request might as well not exist."""
    rig = Rig()
    await rig.engine.complete(CALLER, PLAIN_REQUEST, ID)
    assert await rig.engine.receipt(CALLER, ID) == rig.written()[ID]
    assert await rig.engine.receipt(Caller("other"), ID) is None


async def test_an_observer_reads_each_receipt_that_was_written() -> None:
    """The one on record, of requests that were refused too."""
    rig = Rig()
    await rig.engine.complete(CALLER, PLAIN_REQUEST, ID)
    unknown = replace(PLAIN_REQUEST, model="nobody")
    with pytest.raises(GatewayError):
        await rig.engine.complete(CALLER, unknown, RequestId("req-2"))
    assert rig.observed == list(rig.written().values())


@pytest.mark.faults
async def test_a_deployment_that_was_not_reached_is_lost_until_it_answers() -> None:
    """An answer with an error status is an answer."""
    for status, lost in ((None, True), (500, False)):
        rig = Rig(ScriptedUpstream([UpstreamError("x", status=status) for _ in range(2)]))
        with pytest.raises(GatewayError):
            await rig.engine.complete(CALLER, PLAIN_REQUEST, ID)
        ailing = rig.evidence.circuits.ailing().values()
        assert any(seen.state == "lost" for seen in ailing) == lost
        await rig.engine.complete(CALLER, PLAIN_REQUEST, RequestId("req-2"))
        assert not rig.evidence.circuits.ailing()
