"""What requests at the gateway are charged, and all that each leaves behind."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from sqlalchemy import Table, bindparam, delete, select, update
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.sql import ClauseElement

from turnout.core.govern.closing import Charge, ChargeKind, Closing
from turnout.core.money import Micros
from turnout.core.policies import Reservation, SessionTotals
from turnout.core.receipts import encode_receipt
from turnout.errors import StoreError
from turnout.store.affinity import affinity_rows
from turnout.store.database import Database
from turnout.store.prepared import Insert
from turnout.store.receipts import receipt_row
from turnout.store.replies import FREE_REPLY, KEEP_REPLY, reply_row
from turnout.store.responses import response_row
from turnout.store.schema import affinity, charges, receipts, responses

__all__ = ["BooksStore"]

_NOTHING = SessionTotals(0, Micros(0))
_NO_LIMIT = 2**62
_REMEMBERED = 4_096
"""How many things that are charged are remembered with what they have used."""

_CHARGED = (
    charges.c.kind == bindparam("kind"),
    charges.c.scope == bindparam("scope"),
    charges.c.name == bindparam("name"),
)
_TOTALS = select(charges.c.requests, charges.c.spend).where(*_CHARGED)
_CHANGE = (
    update(charges)
    .where(*_CHARGED)
    .values(
        requests=charges.c.requests + bindparam("more_requests"),
        spend=charges.c.spend + bindparam("more_spend"),
    )
)
_FORGET = delete(charges).where(
    charges.c.kind == bindparam("kind"),
    charges.c.scope == bindparam("scope"),
    charges.c.name < bindparam("name"),
)


class _Counted(NamedTuple):
    place: Reservation
    after: tuple[SessionTotals, ...]
    """Of each charge; empty where refused."""


class BooksStore:
    """One row for each thing that is charged; receipts and what goes with them.

    A request counts with its worst-case cost from `open` to `close`; one that is never closed,
    because its process died, stays counted so. Only `close` waits for the disk: a power cut may
    take the count of calls that were under way.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._count = database.prepare(_count)
        self._totals = database.prepare(lambda _: _TOTALS)
        self._change = database.prepare(lambda _: _CHANGE)
        self._forget = database.prepare(lambda _: _FORGET)
        self._receipt = database.prepare(_receipt)
        self._made = database.prepare(lambda into: _replace(into, affinity))
        self._stored = database.prepare(lambda into: _replace(into, responses))
        self._keep = database.prepare(lambda _: KEEP_REPLY)
        self._free = database.prepare(lambda _: FREE_REPLY)
        self._seen: dict[tuple[ChargeKind, str, str], SessionTotals] = {}
        self._undoing: set[asyncio.Task[None]] = set()

    async def open(self, charges: Sequence[Charge], worst: Micros) -> Reservation:
        """Count a request on every charge and reserve its worst-case cost there, or refuse.

        All or nothing, in one transaction: a request that one charge refuses counts on none, and
        neither does one whose caller is cancelled while it waits.
        """
        counted: _Counted = await self._database.quick(
            partial(self._open, charges, worst),
            durable=False,
            unheard=partial(self._undo, charges, worst),
        )
        for charge, totals in zip(charges, counted.after, strict=False):
            self._note(charge, totals)
        return counted.place

    async def close(self, closing: Closing) -> None:
        """Write all that a request leaves behind, durably and in one transaction.

        The reservation becomes what the request cost. `StoreError` where it has a receipt.
        It is written even where the caller is cancelled while it waits.
        """
        receipt = closing.receipt
        row = {**receipt_row(receipt), "payload": encode_receipt(receipt)}
        difference = Micros(closing.actual - closing.worst)

        def work(cursor: DBAPICursor) -> None:
            self._receipt.run(cursor, row)
            if cursor.rowcount != 1:
                raise StoreError(f"Request {receipt.request_id} already has a receipt.")
            if difference:
                for charge in closing.charges:
                    self._add(cursor, charge, 0, difference)
            self._write_rest(cursor, closing)

        await self._database.quick(work, durable=True, sure=True)
        for charge in closing.charges:
            seen = self._seen.get((charge.kind, charge.scope, charge.name))
            if seen is not None:
                self._note(charge, seen._replace(spend=Micros(seen.spend + difference)))

    async def totals(self, scope: str, name: str, *, kind: ChargeKind = "session") -> SessionTotals:
        """Return what a session, or another thing that is charged, has used."""
        asked = {"kind": kind, "scope": scope, "name": name}
        row = await self._database.read(
            lambda connection: connection.execute(_TOTALS, asked).first()
        )
        return SessionTotals(row.requests, Micros(row.spend)) if row else _NOTHING

    def left(self, charges: Sequence[Charge]) -> Micros | None:
        """Return the least that is left to spend, as far as this process has seen; no waiting.

        None where nothing caps it, or where nothing was seen yet.
        """
        least: Micros | None = None
        for charge in charges:
            most, seen = (
                charge.caps.max_spend,
                self._seen.get((charge.kind, charge.scope, charge.name)),
            )
            if most is not None and seen is not None:
                left = Micros(max(0, most - seen.spend))
                least = left if least is None else min(least, left)
        return least

    async def finish(self) -> None:
        """Wait until requests that were cancelled while they were counted count no more."""
        # Writes are done in their order: with this one all are done that were asked for before.
        with suppress(StoreError):
            await self._database.quick(lambda _: None, durable=False)
        while self._undoing:
            await asyncio.wait(self._undoing)

    def _open(self, charges: Sequence[Charge], worst: Micros, cursor: DBAPICursor) -> _Counted:
        after: list[SessionTotals] = []
        for place, charge in enumerate(charges):
            totals = self._count_one(cursor, charge, worst)
            if totals is None:
                for counted in charges[:place]:
                    self._add(cursor, counted, -1, Micros(-worst))
                return self._refused(cursor, charge)
            if charge.kind == "key_minute" and totals.requests == 1:
                # The first of a minute clears away the minutes before.
                self._forget.run(cursor, _row(charge))
            after.append(totals)
        before = _NOTHING
        if after:
            before = SessionTotals(after[0].requests - 1, Micros(after[0].spend - worst))
        return _Counted(Reservation(granted=True, exceeded="", totals=before), tuple(after))

    def _count_one(
        self, cursor: DBAPICursor, charge: Charge, worst: Micros
    ) -> SessionTotals | None:
        """Count a request; None where a cap does not let it."""
        caps = charge.caps
        if caps.exceeded_by(_NOTHING):
            return None
        most_requests, most_spend = caps.max_requests, caps.max_spend
        limits = {
            "requests_below": _NO_LIMIT if most_requests is None else most_requests,
            "spend_below": _NO_LIMIT if most_spend is None else most_spend,
        }
        self._count.run(cursor, {**_row(charge), **limits, "requests": 1, "spend": worst})
        found = cursor.fetchone()
        return None if found is None else SessionTotals(found[0], Micros(found[1]))

    def _refused(self, cursor: DBAPICursor, charge: Charge) -> _Counted:
        self._totals.run(cursor, _row(charge))
        found = cursor.fetchone()
        totals = SessionTotals(found[0], Micros(found[1])) if found else _NOTHING
        exceeded = charge.caps.exceeded_by(totals)
        place = Reservation(granted=False, exceeded=exceeded, totals=totals, refused_by=charge.kind)
        return _Counted(place, ())

    def _add(self, cursor: DBAPICursor, charge: Charge, requests: int, spend: Micros) -> None:
        self._change.run(cursor, {**_row(charge), "more_requests": requests, "more_spend": spend})

    def _write_rest(self, cursor: DBAPICursor, closing: Closing) -> None:
        if closing.made is not None:
            for row in affinity_rows(closing.made):
                self._made.run(cursor, row)
        if closing.kept is not None:
            settle = self._keep if closing.kept.payload else self._free
            settle.run(cursor, reply_row(closing.kept))
        if closing.stored is not None:
            self._stored.run(cursor, response_row(closing.stored, closing.receipt.at))

    def _undo(self, charges: Sequence[Charge], worst: Micros, counted: _Counted) -> None:
        """Take back what was counted for a request whose caller has gone away meanwhile."""
        if not counted.place.granted:
            return

        def work(cursor: DBAPICursor) -> None:
            for charge in charges:
                self._add(cursor, charge, -1, Micros(-worst))

        undoing = asyncio.ensure_future(self._database.quick(work, durable=False))
        self._undoing.add(undoing)
        undoing.add_done_callback(self._undoing.discard)

    def _note(self, charge: Charge, totals: SessionTotals) -> None:
        if charge.caps.max_spend is None:
            return
        key = charge.kind, charge.scope, charge.name
        # Put last, so that what was not used for longest is first to be forgotten.
        self._seen.pop(key, None)
        self._seen[key] = totals
        if len(self._seen) > _REMEMBERED:
            del self._seen[next(iter(self._seen))]


def _row(charge: Charge) -> dict[str, str]:
    return {"kind": charge.kind, "scope": charge.scope, "name": charge.name}


def _count(into: Insert) -> ClauseElement:
    """Return the one statement that both looks at the caps and counts."""
    names = ("kind", "scope", "name")
    statement = into(charges).values(
        {c.name: bindparam(c.name, type_=c.type) for c in charges.columns}
    )
    new = statement.excluded
    return statement.on_conflict_do_update(
        index_elements=names,
        set_={
            "requests": charges.c.requests + new.requests,
            "spend": charges.c.spend + new.spend,
        },
        where=(charges.c.requests < bindparam("requests_below"))
        & (charges.c.spend < bindparam("spend_below")),
    ).returning(charges.c.requests, charges.c.spend)


def _replace(into: Insert, table: Table) -> ClauseElement:
    """Return an insert of a whole row that replaces the one whose primary key is there."""
    statement = into(table).values({c.name: bindparam(c.name, type_=c.type) for c in table.columns})
    keys = [column.name for column in table.primary_key]
    others = {name: column for name, column in statement.excluded.items() if name not in keys}
    return statement.on_conflict_do_update(index_elements=keys, set_=others)


def _receipt(into: Insert) -> ClauseElement:
    values = {
        c.name: bindparam(c.name, type_=c.type) for c in receipts.columns if not c.primary_key
    }
    statement = into(receipts).values(values)
    others = {name: statement.excluded[name] for name in values if name != "request_id"}
    # Whoever was taken for dead knows after all what became of the request.
    return statement.on_conflict_do_update(
        index_elements=["request_id"], set_=others, where=receipts.c.status == "unknown"
    )
