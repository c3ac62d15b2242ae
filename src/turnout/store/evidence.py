"""What answers and evaluations showed of deployments and models."""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import Connection, bindparam, select

from turnout.core.govern.evidence import (
    Observation,
    QualityResult,
    Rates,
    decode_rates,
    encode_rates,
    fold,
)
from turnout.store.database import Database
from turnout.store.dialects import insert_missing, insert_or_replace
from turnout.store.schema import qualities, rates

__all__ = ["EvidenceStore"]

_RATES = select(rates.c.key, rates.c.payload).where(
    rates.c.key.in_(bindparam("keys", expanding=True))
)
_LOCK_RATES = _RATES.order_by(rates.c.key).with_for_update()
_QUALITIES = select(qualities).order_by(qualities.c.subject, qualities.c.task)
_NOTHING = encode_rates(Rates())


class EvidenceStore:
    """Rates by deployment, merged from all processes, and what evaluations say of models."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def rates(self, keys: Collection[str]) -> Mapping[str, Rates]:
        """Return what is kept of these deployments; those of which nothing is are left out."""
        asked = {"keys": sorted(keys)}
        rows = await self._database.read(lambda connection: connection.execute(_RATES, asked).all())
        return {row.key: _decode(row.payload) for row in rows}

    async def merge_rates(self, seen: Mapping[str, Sequence[Observation]]) -> Mapping[str, Rates]:
        """Add observations to what is kept, and return what is kept of these deployments now.

        A power cut may take the last of them.
        """

        def work(connection: Connection) -> Mapping[str, Rates]:
            for key in sorted(seen):
                insert_missing(connection, rates, {"key": key, "payload": _NOTHING})
            rows = connection.execute(_LOCK_RATES, {"keys": sorted(seen)}).all()
            merged = {row.key: fold(_decode(row.payload), seen[row.key]) for row in rows}
            written = [{"key": key, "payload": encode_rates(r)} for key, r in merged.items()]
            insert_or_replace(connection, rates, written)
            return merged

        return await self._database.write(work, relaxed=True) if seen else {}

    async def qualities(self) -> Sequence[QualityResult]:
        """Return what counts of the evaluations that are applied."""
        rows = await self._database.read(lambda connection: connection.execute(_QUALITIES).all())
        return tuple(
            QualityResult(row.subject, row.task, row.solved, row.tried, row.at, row.source)
            for row in rows
        )


def _decode(payload: str) -> Rates:
    try:
        return decode_rates(payload)
    except ValueError:
        # Figures in a form that is not known here are worth no more than none.
        return Rates()
