"""What probes of endpoints showed."""

from sqlalchemy import bindparam, select

from turnout.store.database import Database
from turnout.store.dialects import insert_or_replace
from turnout.store.schema import probes

__all__ = ["ProbesStore"]

_GET = select(probes.c.text).where(probes.c.key == bindparam("key"))


class ProbesStore:
    """One text per key, kept between runs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, key: str, text: str) -> None:
        """Keep a probe's result, in place of an earlier one."""
        rows = [{"key": key, "text": text}]
        await self._database.write(lambda connection: insert_or_replace(connection, probes, rows))

    async def get(self, key: str) -> str | None:
        """Return the result kept under a key; None where there is none."""
        asked = {"key": key}
        text: str | None = await self._database.read(
            lambda connection: connection.scalar(_GET, asked)
        )
        return text
