"""What runs took so far, read without their records."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, case, func, select

from turnout.core.events import StepStarted, decode_event
from turnout.core.ids import ModelId, RequestId, RunId
from turnout.core.money import Micros
from turnout.core.service.figures import ModelShare, RunFigures
from turnout.core.service.orders import OrderedRun
from turnout.store.database import Database
from turnout.store.schema import events, receipts

__all__ = ["FiguresStore"]

_STEP_STARTED = '%"type":"step_started"}'
"""How such an event ends; within a text its quotes would be escaped."""
_NEWEST_STEP = (
    select(events.c.payload)
    .where(events.c.run_id == bindparam("run"), events.c.payload.like(_STEP_STARTED))
    .order_by(events.c.seq.desc())
    .limit(1)
)
_BY_MODEL = (
    select(
        receipts.c.session,
        receipts.c.key,
        receipts.c.model,
        func.count().label("calls"),
        func.sum(receipts.c.input_tokens).label("input_tokens"),
        func.sum(receipts.c.output_tokens).label("output_tokens"),
        func.sum(receipts.c.cost).label("cost"),
        func.sum(case((receipts.c.cost.is_(None), 1), else_=0)).label("unpriced"),
    )
    .where(receipts.c.session.in_(bindparam("runs", expanding=True)))
    .group_by(receipts.c.session, receipts.c.key, receipts.c.model)
    .order_by(func.count().desc(), receipts.c.model)
)

_REPAIRED = select(receipts.c.request_id, receipts.c.repairs).where(
    receipts.c.session == bindparam("run"),
    receipts.c.key == bindparam("of_key"),
    receipts.c.repairs > 0,
)


class FiguresStore:
    """Reads figures of some runs at once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, runs: Collection[OrderedRun]) -> Mapping[RunId, RunFigures]:
        """Return those of each run, as of one moment."""
        begun = [run.run_id for run in runs if run.started_at is not None]

        def work(connection: Connection) -> Mapping[RunId, RunFigures]:
            rows = connection.execute(_BY_MODEL, {"runs": begun}).all() if begun else []
            calls: dict[tuple[str, str], list[Row[Any]]] = {}
            for row in rows:
                calls.setdefault((row.session, row.key), []).append(row)
            # Another key may have named its session so, too.
            return {
                run.run_id: _figures(
                    _steps(connection, run.run_id), calls.get((run.run_id, run.order.key), [])
                )
                for run in runs
            }

        return await self._database.read(work)

    async def repaired(self, run: OrderedRun) -> Mapping[RequestId, int]:
        """Return how often the gateway mended the answers to a run's calls, where it did."""
        asked = {"run": run.run_id, "of_key": run.order.key}
        rows = await self._database.read(
            lambda connection: connection.execute(_REPAIRED, asked).all()
        )
        return {RequestId(row.request_id): row.repairs for row in rows}


def _steps(connection: Connection, run_id: RunId) -> int:
    payload = connection.scalar(_NEWEST_STEP, {"run": run_id})
    event = None if payload is None else decode_event(payload)
    return event.step if isinstance(event, StepStarted) else 0


def _figures(steps: int, rows: Sequence[Row[Any]]) -> RunFigures:
    # PostgreSQL adds big integers up to a numeric.
    def total(name: str) -> int:
        return sum(int(getattr(row, name) or 0) for row in rows)

    return RunFigures(
        steps=steps,
        models=tuple(ModelShare(ModelId(row.model), row.calls) for row in rows if row.model),
        input_tokens=total("input_tokens"),
        output_tokens=total("output_tokens"),
        cost=Micros(total("cost")),
        unpriced=total("unpriced"),
    )
