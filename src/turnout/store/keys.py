"""The keys that callers are known by, without the keys themselves."""

from collections.abc import Sequence

from pydantic import TypeAdapter
from sqlalchemy import Connection, bindparam, func, select, update

from turnout.core.govern.keys import KeyEntry, KeyRecord
from turnout.core.json import encode_values
from turnout.errors import ConflictError, NotFoundError
from turnout.store.database import Database
from turnout.store.dialects import insert_missing
from turnout.store.schema import keys

__all__ = ["KeysStore"]

_REVISION = select(func.coalesce(func.max(keys.c.revision), 0))
_ALL = select(keys.c.digest, keys.c.payload).order_by(keys.c.name)
_PUT = (
    update(keys)
    .where(keys.c.name == bindparam("wanted"))
    .values(payload=bindparam("new_payload"), revision=bindparam("new_revision"))
)


class KeysStore:
    """One row for each key, kept for ever: receipts name it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def revision(self) -> int:
        """Return a number that grows with every change; 0 where there never was a key."""
        return await self._database.read(_revision)

    async def all(self) -> Sequence[KeyEntry]:
        """Return every key, revoked ones too, by name."""
        rows = await self._database.read(lambda connection: connection.execute(_ALL).all())
        adapter = TypeAdapter(KeyRecord)
        return tuple(KeyEntry(row.digest, adapter.validate_json(row.payload)) for row in rows)

    async def add(self, entry: KeyEntry) -> None:
        """Keep a new key; `ConflictError` where there is or was one of its name."""
        record = entry.record

        def work(connection: Connection) -> None:
            row = {
                "name": record.name,
                "digest": entry.digest,
                "revision": _revision(connection) + 1,
                "payload": encode_values(record),
            }
            if not insert_missing(connection, keys, row):
                raise ConflictError(
                    f"There is, or was, a key {record.name!r}.", mend="Choose another name."
                )

        await self._database.write(work)

    async def put(self, record: KeyRecord) -> None:
        """Change what a key may do; `NotFoundError` where there is none of that name."""

        def work(connection: Connection) -> None:
            values = {
                "wanted": record.name,
                "new_payload": encode_values(record),
                "new_revision": _revision(connection) + 1,
            }
            if not connection.execute(_PUT, values).rowcount:
                raise NotFoundError(f"There is no key {record.name!r}.")

        await self._database.write(work)


def _revision(connection: Connection) -> int:
    found: int = connection.execute(_REVISION).scalar_one()
    return found
