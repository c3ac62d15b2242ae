"""Reading what was ordered, within a transaction of whoever asks."""

import json
from functools import cache
from typing import Final

from pydantic import TypeAdapter
from sqlalchemy import Connection, RowMapping, bindparam, select

from turnout.core.events import ApprovalAsked, decode_event
from turnout.core.ids import RunId
from turnout.core.json import ascii_json
from turnout.core.service.orders import Order, OrderedRun
from turnout.errors import NotFoundError, StoreError
from turnout.store.schema import orders, runs

__all__ = ["ORDERED", "encode_order", "one", "ordered"]

ORDERED: Final = select(
    orders,
    runs.c.number,
    runs.c.epoch,
    runs.c.last_seq,
    runs.c.started_at,
    runs.c.ended_at,
    runs.c.outcome,
    runs.c.verdict,
).join_from(orders, runs)
_ONE: Final = ORDERED.where(orders.c.run_id == bindparam("run"))


def one(connection: Connection, run_id: RunId, project: str | None = None) -> OrderedRun:
    """Return a run, of `project` where that is given; `NotFoundError` where there is none."""
    row = connection.execute(_ONE, {"run": run_id}).mappings().first()
    if row is None or project not in {None, row["project"]}:
        raise NotFoundError(f"There is no run {run_id!r}.")
    return ordered(row)


def ordered(row: RowMapping) -> OrderedRun:
    """Return the run of a row of `ORDERED`."""
    return OrderedRun(
        run_id=RunId(row["run_id"]),
        number=row["number"],
        order=_adapter().validate_python(json.loads(row["payload"])),
        state=row["state"],
        epoch=row["epoch"],
        ordered_at=row["ordered_at"],
        started_at=row["started_at"] if row["last_seq"] else None,
        ended_at=row["ended_at"],
        outcome=row["outcome"],
        verdict=row["verdict"],
        cancel_asked=bool(row["cancel"]),
        waits_for=_asked(row),
        worker=row["worker"],
    )


def encode_order(order: Order) -> str:
    """Return an order as one JSON object in ASCII."""
    return ascii_json(_adapter().dump_python(order, mode="json"))


@cache
def _adapter() -> TypeAdapter[Order]:
    return TypeAdapter(Order)


def _asked(row: RowMapping) -> ApprovalAsked | None:
    if row["waits"] is None:
        return None
    event = decode_event(row["waits"])
    if not isinstance(event, ApprovalAsked):
        raise StoreError(f"What run {row['run_id']} waits for cannot be read.")
    return event
