"""Every request's receipt."""

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select
from sqlalchemy.exc import IntegrityError

from turnout.core.ids import RequestId, SessionId
from turnout.core.receipts import Receipt, decode_receipt, encode_receipt
from turnout.errors import StoreError
from turnout.store.database import Database
from turnout.store.schema import receipts

__all__ = ["ReceiptsStore", "receipt_row"]

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
        row = {**receipt_row(receipt), "payload": encode_receipt(receipt)}

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


def receipt_row(receipt: Receipt) -> Mapping[str, Any]:
    """Return what a receipt's row holds, all but its payload.

    What never was known is None. A latency is there only for an answer that a model gave whole:
    neither a refusal nor a replay says anything of a route.
    """
    decision, routing, usage = receipt.decision, receipt.routing, receipt.usage
    status = receipt.status
    answered = receipt.operation == "answer" and receipt.replay_of is None
    cost = receipt.cost_micros
    return {
        "request_id": receipt.request_id,
        "at": receipt.at,
        "session": receipt.session,
        "key": receipt.key,
        "project": receipt.project,
        "policy": receipt.policy or None,
        "status": status,
        "model": routing.model if routing else None,
        "deployment": _deployment(receipt),
        "objective": decision.objective if decision else None,
        "task": decision.task if decision else None,
        "call_kind": receipt.call_kind,
        "shape": receipt.shape,
        "day": receipt.at.astimezone(UTC).date().isoformat(),
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cache_read_input_tokens,
        "cost": 0 if cost is None and routing is None and status != "unknown" else cost,
        "latency_ms": receipt.latency_ms if answered and status == "ok" else None,
        "ttft_ms": receipt.ttft_ms if answered else None,
        "fallback": int(routing is not None and routing.fallback),
        "repairs": len(receipt.repairs),
        "tools": len(receipt.tools_declared),
        "outside": len(receipt.tools_outside),
    }


def _deployment(receipt: Receipt) -> str | None:
    """Return who answered, or who was asked last where none did."""
    if receipt.routing is not None:
        return receipt.routing.deployment
    return receipt.attempts[-1].deployment if receipt.attempts else None


def _decode(payload: str) -> Receipt:
    try:
        return decode_receipt(payload)
    except ValueError as error:
        raise StoreError(f"A stored receipt cannot be read: {error}") from error
