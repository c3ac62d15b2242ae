"""Evaluations that were applied, and the qualities that follow from them."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Final

from pydantic import TypeAdapter
from sqlalchemy import Connection, bindparam, delete, insert, select

from turnout.core.govern.evidence import Evaluation, in_force
from turnout.core.json import encode_values
from turnout.errors import NotFoundError
from turnout.store.database import Database
from turnout.store.dialects import serialise
from turnout.store.schema import evaluations, qualities

__all__ = ["EvaluationsStore"]

_CHANGING: Final = 7_217_004
"""Lock of whoever applies an evaluation or takes one back."""
_ALL = select(evaluations.c.payload).order_by(evaluations.c.number)
_OF = evaluations.c.id == bindparam("evaluation")
_REMOVE = delete(evaluations).where(_OF)


class EvaluationsStore:
    """Evaluations in the order in which they were applied."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def applied(self) -> Sequence[Evaluation]:
        """Return every evaluation, that which was applied last at the end."""
        rows = await self._database.read(lambda connection: connection.scalars(_ALL).all())
        return tuple(map(_decode, rows))

    async def apply(self, evaluation: Evaluation) -> bool:
        """Let an evaluation count before all others; False where it does so already."""

        def work(connection: Connection) -> bool:
            serialise(connection, _CHANGING)
            newest = connection.scalars(_ALL).all()[-1:]
            if newest and _decode(newest[0]).same_as(evaluation):
                return False
            connection.execute(_REMOVE, {"evaluation": evaluation.id})
            row = {"id": evaluation.id, "payload": encode_values(evaluation)}
            connection.execute(insert(evaluations), row)
            _settle(connection)
            return True

        return await self._database.write(work)

    async def undo(self, evaluation_id: str) -> None:
        """Let an evaluation count no more; `NotFoundError` where it was not applied."""

        def work(connection: Connection) -> None:
            serialise(connection, _CHANGING)
            if not connection.execute(_REMOVE, {"evaluation": evaluation_id}).rowcount:
                raise NotFoundError(f"No evaluation {evaluation_id!r} is applied.")
            _settle(connection)

        await self._database.write(work)


def _settle(connection: Connection) -> None:
    """Write the qualities that follow from what is applied now."""
    connection.execute(delete(qualities))
    found = in_force([_decode(row) for row in connection.scalars(_ALL).all()])
    rows = [
        {
            "subject": each.subject,
            "task": each.task,
            "at": each.at,
            "solved": each.solved,
            "tried": each.tried,
            "source": each.source,
        }
        for each in found
    ]
    if rows:
        connection.execute(insert(qualities), rows)


@cache
def _adapter() -> TypeAdapter[Evaluation]:
    return TypeAdapter(Evaluation)


def _decode(payload: str) -> Evaluation:
    return _adapter().validate_python(json.loads(payload))
