"""Every request's receipt."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, insert, select
from sqlalchemy.exc import IntegrityError

from turnout.core.ids import RequestId, SessionId
from turnout.core.receipts import Receipt, decode_receipt, encode_receipt
from turnout.errors import StoreError
from turnout.store.database import Database
from turnout.store.schema import receipts

__all__ = ["ReceiptsStore"]

_ADD = insert(receipts)
_GET = select(receipts.c.payload).where(receipts.c.request_id == bindparam("request"))
_OF_SESSION = (
    select(receipts.c.payload)
    .where(receipts.c.session == bindparam("session"), receipts.c.key == bindparam("key"))
    .order_by(receipts.c.at, receipts.c.number)
)


class ReceiptsStore:
    """Receipts, written once and never changed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, receipt: Receipt) -> None:
        """Write a receipt durably; `StoreError` where the request has one."""
        row = {
            "request_id": receipt.request_id,
            "at": receipt.at,
            "session": receipt.session,
            "key": receipt.key,
            "payload": encode_receipt(receipt),
        }

        def work(connection: Connection) -> None:
            try:
                connection.execute(_ADD, row)
            except IntegrityError as error:
                message = f"Request {receipt.request_id} already has a receipt."
                raise StoreError(message) from error

        await self._database.write(work)

    async def get(self, request_id: RequestId) -> Receipt | None:
        """Return a receipt; None where there is none."""
        asked = {"request": request_id}
        payload = await self._database.read(lambda connection: connection.scalar(_GET, asked))
        return None if payload is None else _decode(payload)

    async def of_session(self, session: SessionId, *, key: str) -> Sequence[Receipt]:
        """Return a session's receipts of one key, oldest first."""
        asked = {"session": session, "key": key}
        payloads = await self._database.read(
            lambda connection: connection.scalars(_OF_SESSION, asked).all()
        )
        return tuple(_decode(payload) for payload in payloads)


def _decode(payload: str) -> Receipt:
    try:
        return decode_receipt(payload)
    except ValueError as error:
        raise StoreError(f"A stored receipt cannot be read: {error}") from error
