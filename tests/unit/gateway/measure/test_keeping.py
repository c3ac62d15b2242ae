"""Evidence outlives its process and is shared among several."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from pydantic import TypeAdapter

from turnout.core.govern.evidence import Observation, QualityResult, Rates
from turnout.core.ids import DeploymentId
from turnout.errors import StoreError
from turnout.gateway.evidence import Check, Examination, ProbeResult
from turnout.gateway.measure.keeping import EvidenceKeeper
from turnout.gateway.measure.live import LiveEvidence
from turnout.testing.clock import FrozenClock
from turnout.testing.stores import MemoryEvidenceStore, MemoryProbesStore

A, B = DeploymentId("acme/m"), DeploymentId("other/m")
KEYS = {A: "endpoint-and-model"}


class Brittle(MemoryEvidenceStore):
    """A store that fails while it is told to."""

    failing = False

    async def merge_rates(self, seen: Mapping[str, Sequence[Observation]]) -> Mapping[str, Rates]:
        """Fail, or merge."""
        if self.failing:
            raise StoreError("The disk is full.")
        return await super().merge_rates(seen)


class Awaited(MemoryEvidenceStore):
    """A store that can be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.merged = asyncio.Event()

    async def merge_rates(self, seen: Mapping[str, Sequence[Observation]]) -> Mapping[str, Rates]:
        """Merge, and let it be known."""
        self.merged.set()
        return await super().merge_rates(seen)


async def test_the_next_process_begins_where_the_last_ended() -> None:
    """Under the key of endpoint and model, whatever the catalog calls it now."""
    store, clock = MemoryEvidenceStore(), FrozenClock()
    live = LiveEvidence(clock)
    async with EvidenceKeeper(live, store, KEYS, MemoryProbesStore()):
        live.observe(A, ttft_ms=120.0, tokens_per_second=40.0, calls=9, malformed=1)
    clock.advance(3_600)
    after = LiveEvidence(clock)
    async with EvidenceKeeper(after, store, {B: KEYS[A]}, MemoryProbesStore()):
        known = after.snapshot().of[B]
    assert (known.ttft_ms_p50, known.tokens_per_second_p50, known.tool_samples) == (120, 40, 9)
    assert known.latency_at == datetime(2026, 1, 1, tzinfo=UTC)


async def test_two_processes_see_each_others_answers_once() -> None:
    """However often they save, every observation counts once."""
    store = MemoryEvidenceStore()
    ours, theirs = LiveEvidence(FrozenClock()), LiveEvidence(FrozenClock())
    async with (
        EvidenceKeeper(ours, store, KEYS, MemoryProbesStore()) as one,
        EvidenceKeeper(theirs, store, KEYS, MemoryProbesStore()) as two,
    ):
        ours.observe(A, calls=3)
        theirs.observe(A, calls=4, malformed=4)
        for _ in range(3):
            await one.exchange()
            await two.exchange()
            await one.exchange()
        for live in (ours, theirs):
            known = live.snapshot().of[A]
            assert (known.tool_samples, known.tool_success) == (7, 1 - 4 / 7)


async def test_what_could_not_be_saved_is_saved_later() -> None:
    """A full disk loses no evidence, and harms no request."""
    store, live = Brittle(), LiveEvidence(FrozenClock())
    async with EvidenceKeeper(live, store, KEYS, MemoryProbesStore()):
        store.failing = True
        live.observe(A, calls=2)
    assert await store.rates(KEYS.values()) == {}
    store.failing = False
    async with EvidenceKeeper(live, store, KEYS, MemoryProbesStore()):
        live.observe(A, calls=1)
    assert (await store.rates(KEYS.values()))[KEYS[A]].calls == 3


async def test_it_saves_by_itself() -> None:
    """A process that is killed loses a few seconds of evidence."""
    store, live = Awaited(), LiveEvidence(FrozenClock())
    async with EvidenceKeeper(live, store, KEYS, MemoryProbesStore(), every=0.001):
        live.observe(A, calls=1)
        await store.merged.wait()


async def test_an_evaluation_reaches_a_running_gateway() -> None:
    """It counts from the next exchange on, and no more once it is taken back."""
    store, live = MemoryEvidenceStore(), LiveEvidence(FrozenClock())
    async with EvidenceKeeper(live, store, KEYS, MemoryProbesStore()) as keeper:
        at = datetime(2026, 1, 1, tzinfo=UTC)
        store.know(QualityResult("m", "coding", 3, 4, at, "eval"))
        await keeper.exchange()
        assert live.snapshot().quality["m"]["coding"].value == 0.75
        store.know()
        await keeper.exchange()
        assert live.snapshot().quality == {}


async def test_a_probe_reaches_a_running_gateway() -> None:
    """`turnout models probe` is another process; what it found counts at the next exchange."""
    probes, live = MemoryProbesStore(), LiveEvidence(FrozenClock())
    at = datetime(2026, 1, 1, tzinfo=UTC)
    async with EvidenceKeeper(live, MemoryEvidenceStore(), KEYS, probes) as keeper:
        exam = Examination(at, (Check("call", 18, 20),))
        result = ProbeResult(B, at, "confirmed", False, True, True, "", exam)
        await probes.put(KEYS[A], TypeAdapter(ProbeResult).dump_json(result).decode())
        await keeper.exchange()
        known = live.snapshot().of[A]
        assert (known.tools, known.tool_success, known.tool_samples) == ("confirmed", 0.9, 20)
        before = live.snapshot()
        await keeper.exchange()
        assert live.snapshot() is before
