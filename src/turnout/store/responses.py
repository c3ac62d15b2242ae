"""Responses that a later request may continue."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, select

from turnout.core.govern.closing import StoredResponse
from turnout.core.ids import DeploymentId, ModelId, RequestId
from turnout.core.tools import Holder
from turnout.store.database import Database
from turnout.store.dialects import insert_or_replace
from turnout.store.schema import responses

__all__ = ["ResponsesStore", "response_row"]

_THIS = (responses.c.scope == bindparam("of"), responses.c.id == bindparam("wanted"))
_GET = select(responses).where(*_THIS)
_DELETE = delete(responses).where(*_THIS)
_FORGET = delete(responses).where(responses.c.at < bindparam("before"))


class ResponsesStore:
    """Stored responses, each seen by the key that asked for it alone."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, stored: StoredResponse, at: datetime) -> None:
        """Keep a response durably."""
        row = response_row(stored, at)
        await self._database.write(lambda conn: insert_or_replace(conn, responses, [row]))

    async def get(self, scope: str, wanted: RequestId) -> StoredResponse | None:
        """Return a response; None where the scope has none of that id."""

        def work(connection: Connection) -> StoredResponse | None:
            row = connection.execute(_GET, {"of": scope, "wanted": wanted}).one_or_none()
            return None if row is None else _stored(row)

        return await self._database.read(work)

    async def delete(self, scope: str, wanted: RequestId) -> bool:
        """Forget a response; False where the scope has none of that id."""

        def work(connection: Connection) -> bool:
            return connection.execute(_DELETE, {"of": scope, "wanted": wanted}).rowcount > 0

        return await self._database.write(work)

    async def forget(self, before: datetime) -> int:
        """Forget the responses of before that moment; return how many there were."""

        def work(connection: Connection) -> int:
            return connection.execute(_FORGET, {"before": before}).rowcount

        return await self._database.write(work)


def response_row(stored: StoredResponse, at: datetime) -> Mapping[str, Any]:
    """Return the row of a response that was made at that moment."""
    return {
        "scope": stored.scope,
        "id": stored.id,
        "at": at,
        **stored.holder._asdict(),
        "items": stored.items,
        "made": stored.made,
        "envelope": stored.envelope,
    }


def _stored(row: Row[Any]) -> StoredResponse:
    return StoredResponse(
        scope=row.scope,
        id=RequestId(row.id),
        items=row.items,
        holder=Holder(ModelId(row.model), DeploymentId(row.deployment)),
        made=row.made,
        envelope=row.envelope,
    )
