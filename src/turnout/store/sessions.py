"""Requests and spend of each session."""

from sqlalchemy import Connection, bindparam, insert, select, update
from sqlalchemy.exc import IntegrityError

from turnout.core.ids import RequestId, SessionId
from turnout.core.money import Micros
from turnout.core.policies import Reservation, SessionCaps, SessionTotals
from turnout.errors import NotFoundError, StoreError
from turnout.store.database import Database
from turnout.store.dialects import insert_missing
from turnout.store.schema import reservations, sessions

__all__ = ["SessionLedgerStore"]

_NOTHING = SessionTotals(0, Micros(0))

_SESSION = (
    sessions.c.scope == bindparam("in_scope"),
    sessions.c.session == bindparam("in_session"),
)
_TOTALS = select(sessions.c.requests, sessions.c.spend).where(*_SESSION)
_LOCK_TOTALS = _TOTALS.with_for_update()
_ADD = (
    update(sessions)
    .where(*_SESSION)
    .values(
        requests=sessions.c.requests + bindparam("more_requests"),
        spend=sessions.c.spend + bindparam("more_spend"),
    )
)

_RESERVATION = reservations.c.request_id == bindparam("request")
_RESERVE = insert(reservations)
_LOCK_RESERVATION = select(reservations).where(_RESERVATION).with_for_update()
_SETTLE = update(reservations).where(_RESERVATION).values(amount=bindparam("actual"))


class SessionLedgerStore:
    """A total per session, kept in step with its reservations.

    A request counts with its worst-case cost from reservation to settlement; one that is never
    settled, because its process died, stays counted so. Only settlements wait for the disk: a
    power cut may take the count of calls that were under way.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def reserve(
        self,
        scope: str,
        session: SessionId,
        request_id: RequestId,
        worst: Micros,
        caps: SessionCaps,
    ) -> Reservation:
        """Count a request and reserve its worst-case cost, or refuse, in one transaction.

        `StoreError` where the request has a reservation.
        """

        def work(connection: Connection) -> Reservation:
            totals = _lock_totals(connection, scope, session)
            exceeded = caps.exceeded_by(totals)
            if exceeded:
                return Reservation(granted=False, exceeded=exceeded, totals=totals)
            _add(connection, scope, session, requests=1, spend=worst)
            row = {"request_id": request_id, "scope": scope, "session": session, "amount": worst}
            try:
                connection.execute(_RESERVE, row)
            except IntegrityError as error:
                message = f"Request {request_id} already has a reservation."
                raise StoreError(message) from error
            return Reservation(granted=True, exceeded="", totals=totals)

        return await self._database.write(work, relaxed=True)

    async def settle(self, request_id: RequestId, actual: Micros) -> None:
        """Replace a reservation by what the request cost; `NotFoundError` where there is none.

        Settling again corrects the amount.
        """

        def work(connection: Connection) -> None:
            row = connection.execute(_LOCK_RESERVATION, {"request": request_id}).first()
            if row is None:
                raise NotFoundError(f"Request {request_id} has no reservation.")
            connection.execute(_SETTLE, {"request": request_id, "actual": actual})
            _add(connection, row.scope, row.session, requests=0, spend=actual - row.amount)

        await self._database.write(work)

    async def totals(self, scope: str, session: SessionId) -> SessionTotals:
        """Return what a session has used."""
        asked = {"in_scope": scope, "in_session": session}
        row = await self._database.read(
            lambda connection: connection.execute(_TOTALS, asked).first()
        )
        return SessionTotals(row.requests, Micros(row.spend)) if row else _NOTHING


def _lock_totals(connection: Connection, scope: str, session: str) -> SessionTotals:
    asked = {"in_scope": scope, "in_session": session}
    row = connection.execute(_LOCK_TOTALS, asked).first()
    if row is None:
        new = {"scope": scope, "session": session, "requests": 0, "spend": 0}
        insert_missing(connection, sessions, new)
        row = connection.execute(_LOCK_TOTALS, asked).one()
    return SessionTotals(row.requests, Micros(row.spend))


def _add(connection: Connection, scope: str, session: str, *, requests: int, spend: int) -> None:
    more = {"more_requests": requests, "more_spend": spend}
    connection.execute(_ADD, {"in_scope": scope, "in_session": session, **more})
