"""The gateway's books, its keys and its kept answers, in memory."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime

from turnout.core.govern.closing import Charge, ChargeKind, Closing, KeptReply
from turnout.core.govern.keys import KeyEntry, KeyRecord
from turnout.core.govern.replies import Standing
from turnout.core.money import Micros
from turnout.core.policies import Reservation, SessionTotals
from turnout.errors import ConflictError, NotFoundError
from turnout.testing.stores import MemoryAffinityStore, MemoryReceiptsStore, MemoryResponsesStore

__all__ = ["MemoryBooks", "MemoryKeys", "MemoryReplies"]

_NOTHING = SessionTotals(0, Micros(0))


class MemoryReplies:
    """What each idempotency key stands for."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], KeptReply] = {}
        """By scope and idempotency key; claims have no payload."""

    async def claim(self, wanted: KeptReply, now: datetime) -> Standing:
        """Claim a key for `wanted.holder` until `wanted.until`, unless it is taken."""
        place = wanted.scope, wanted.idempotency_key
        there = self.kept.get(place)
        if there is None or there.until <= now:
            self.kept[place] = wanted
            lapsed = None if there is None or there.payload else there.holder
            return Standing("claimed", wanted.digest, lapsed=lapsed)
        return Standing("kept" if there.payload else "running", there.digest, there.payload)

    async def renew(self, claims: Sequence[KeptReply]) -> None:
        """Hold claims until their new `until`; those that lapsed and were taken stay taken."""
        for claim in claims:
            if self._is_claimed_by(claim):
                self.kept[claim.scope, claim.idempotency_key] = claim

    async def free(self, claim: KeptReply) -> None:
        """Give up a claim; an answer that is kept stays."""
        if self._is_claimed_by(claim):
            del self.kept[claim.scope, claim.idempotency_key]

    async def settle(self, reply: KeptReply) -> None:
        """Do what the end of a request does: keep its answer, or give up its claim."""
        await (self.renew([reply]) if reply.payload else self.free(reply))

    def _is_claimed_by(self, claim: KeptReply) -> bool:
        there = self.kept.get((claim.scope, claim.idempotency_key))
        return there is not None and there.holder == claim.holder and not there.payload


class MemoryBooks:
    """What was charged and left behind, and the stores that read it back."""

    def __init__(self, receipts: MemoryReceiptsStore | None = None) -> None:
        self.closings: list[Closing] = []
        """In the order in which they were written."""
        self.receipts = receipts or MemoryReceiptsStore()
        self.affinity = MemoryAffinityStore()
        self.replies = MemoryReplies()
        self.responses = MemoryResponsesStore()
        self._totals: dict[tuple[ChargeKind, str, str], SessionTotals] = {}
        self._writing: set[asyncio.Future[None]] = set()

    async def open(self, charges: Sequence[Charge], worst: Micros) -> Reservation:
        """Count a request on every charge and reserve its worst-case cost there, or refuse."""
        before = [self._before(charge) for charge in charges]
        for charge, totals in zip(charges, before, strict=True):
            exceeded = charge.caps.exceeded_by(totals)
            if exceeded:
                return Reservation(
                    granted=False, exceeded=exceeded, totals=totals, refused_by=charge.kind
                )
        self._add(charges, 1, worst)
        return Reservation(granted=True, exceeded="", totals=before[0] if before else _NOTHING)

    async def close(self, closing: Closing) -> None:
        """Write all that a request leaves behind; `StoreError` where it has a receipt.

        It is written even where its caller is cancelled.
        """
        writing = asyncio.ensure_future(self._write(closing))
        self._writing.add(writing)
        writing.add_done_callback(self._writing.discard)
        await asyncio.shield(writing)

    async def finish(self) -> None:
        """Wait for what is being written."""
        if self._writing:
            await asyncio.wait(self._writing)

    async def _write(self, closing: Closing) -> None:
        await self.receipts.add(closing.receipt)
        self.closings.append(closing)
        self._add(closing.charges, 0, Micros(closing.actual - closing.worst))
        if closing.made is not None:
            await self.affinity.remember(closing.made)
        if closing.kept is not None:
            await self.replies.settle(closing.kept)
        if closing.stored is not None:
            await self.responses.put(closing.stored, closing.receipt.at)

    async def totals(self, scope: str, name: str, *, kind: ChargeKind = "session") -> SessionTotals:
        """Return what a session, or another thing that is charged, has used."""
        return self._totals.get((kind, scope, name), _NOTHING)

    def left(self, charges: Sequence[Charge]) -> Micros | None:
        """Return the least that is left to spend; None where nothing caps it."""
        return min(self._left(charges), default=None)

    def _left(self, charges: Sequence[Charge]) -> Iterator[Micros]:
        for charge in charges:
            if charge.caps.max_spend is not None:
                spent = self._before(charge).spend
                yield Micros(max(0, charge.caps.max_spend - spent))

    def _before(self, charge: Charge) -> SessionTotals:
        return self._totals.get((charge.kind, charge.scope, charge.name), _NOTHING)

    def _add(self, charges: Sequence[Charge], requests: int, spend: Micros) -> None:
        for charge in charges:
            was = self._before(charge)
            now = SessionTotals(was.requests + requests, Micros(was.spend + spend))
            self._totals[charge.kind, charge.scope, charge.name] = now


class MemoryKeys:
    """Keys by name."""

    def __init__(self) -> None:
        self._entries: dict[str, KeyEntry] = {}
        self._revision = 0

    async def revision(self) -> int:
        """Return a number that grows with every change; 0 where there never was a key."""
        return self._revision

    async def all(self) -> Sequence[KeyEntry]:
        """Return every key, revoked ones too, by name."""
        return tuple(self._entries[name] for name in sorted(self._entries))

    async def add(self, entry: KeyEntry) -> None:
        """Keep a new key; `ConflictError` where there is or was one of its name."""
        if entry.record.name in self._entries:
            raise ConflictError(f"There is a key {entry.record.name!r} already.")
        self._put(entry)

    async def put(self, record: KeyRecord) -> None:
        """Change what a key may do; `NotFoundError` where there is none of that name."""
        if record.name not in self._entries:
            raise NotFoundError(f"There is no key {record.name!r}.")
        self._put(KeyEntry(self._entries[record.name].digest, record))

    def _put(self, entry: KeyEntry) -> None:
        self._entries[entry.record.name] = entry
        self._revision += 1
