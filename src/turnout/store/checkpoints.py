"""What workspaces of runs held, in pieces, for machines that share nothing but the database."""

import asyncio
import hashlib
import json
import zlib
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, RowMapping, bindparam, delete, insert, select

from turnout.core.ids import RunId
from turnout.core.service.checkpoints import Part
from turnout.errors import NotFoundError, StoreError
from turnout.store.database import Database
from turnout.store.dialects import insert_missing
from turnout.store.pieces import LARGEST, Cutter
from turnout.store.schema import checkpoint_pieces as pieces
from turnout.store.schema import checkpoints, runs

__all__ = ["CheckpointsStore"]

_FAST: Final = 1
_AT_ONCE: Final = 4 << 20
"""Bytes that one transaction writes, before they are packed."""
_FETCHED: Final = 16
"""Pieces that one query reads."""
_SWEPT: Final = 100
"""Runs that one sweep forgets."""

_OF_RUN = checkpoints.c.run_id == bindparam("of_run")
_FIND = select(checkpoints.c.epoch, checkpoints.c.likeness, checkpoints.c.pieces).where(
    _OF_RUN, checkpoints.c.key == bindparam("of_key")
)
_UP_TO = select(checkpoints.c.key, checkpoints.c.epoch, checkpoints.c.pieces).where(
    _OF_RUN, checkpoints.c.epoch <= bindparam("of_epoch")
)
_PUT = insert(pieces)
_DROP = delete(checkpoints).where(_OF_RUN, checkpoints.c.key == bindparam("of_key"))
_PIECES = select(pieces.c.digest, pieces.c.data).where(
    pieces.c.run_id == bindparam("of_run"),
    pieces.c.epoch == bindparam("of_epoch"),
    pieces.c.digest.in_(bindparam("wanted", expanding=True)),
)
_KNOWN = select(pieces.c.epoch, pieces.c.digest).where(
    pieces.c.run_id == bindparam("of_run"), pieces.c.epoch <= bindparam("of_epoch")
)
_DROP_PIECE = delete(pieces).where(
    pieces.c.run_id == bindparam("of_run"),
    pieces.c.epoch == bindparam("of_epoch"),
    pieces.c.digest == bindparam("of_digest"),
)
_FORGET = tuple(
    delete(table).where(table.c.run_id == bindparam("of_run")) for table in (checkpoints, pieces)
)
_OVER = (
    select(pieces.c.run_id)
    .outerjoin(runs, runs.c.run_id == pieces.c.run_id)
    .where(runs.c.run_id.is_(None) | runs.c.ended_at.is_not(None))
    .distinct()
    .limit(_SWEPT)
)


class CheckpointsStore:
    """Parts by run and key; equal pieces that one segment of a run puts are kept once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def likeness(self, run_id: RunId, key: str) -> str | None:
        """Return what a part lies on; None where it is not kept."""
        found = await self._find(run_id, key)
        return None if found is None else str(found["likeness"])

    async def put(self, part: Part, stream: AsyncIterator[bytes]) -> None:
        """Keep a part, whole or not at all; one that is there stays."""
        known = await self._known(part)
        named: list[str] = []
        waiting: dict[str, bytes] = {}
        cutter = Cutter()
        size = 0
        async for data in stream:
            for piece in await asyncio.to_thread(list, cutter.feed(data)):
                size += len(piece)
                _note(piece, named, waiting, known)
            if sum(map(len, waiting.values())) >= _AT_ONCE:
                await self._write(part, waiting)
                known |= waiting.keys()
                waiting = {}
        for piece in cutter.close():
            size += len(piece)
            _note(piece, named, waiting, known)
        await self._write(part, waiting)
        row = {
            "run_id": part.run_id,
            "key": part.key,
            "epoch": part.epoch,
            "likeness": part.likeness,
            "size": size,
            "pieces": json.dumps(named),
        }
        await self._database.write(lambda conn: insert_missing(conn, checkpoints, row))

    async def get(self, run_id: RunId, key: str) -> AsyncIterator[bytes]:
        """Yield a part; `NotFoundError` where it is not kept, `StoreError` where it is broken."""
        found = await self._find(run_id, key)
        if found is None:
            raise NotFoundError(f"No checkpoint {key[:12]} of {run_id} is kept.")
        named: list[str] = json.loads(found["pieces"])
        for start in range(0, len(named), _FETCHED):
            wanted = named[start : start + _FETCHED]
            packed = await self._fetched(run_id, found["epoch"], set(wanted))
            for digest in wanted:
                if digest not in packed:
                    raise NotFoundError(f"A piece of checkpoint {key[:12]} is gone.")
                yield await asyncio.to_thread(_unpacked, digest, packed[digest])

    async def keep_only(self, run_id: RunId, epoch: int, keys: Collection[str]) -> None:
        """Drop the other parts that this segment of a run, or an earlier one, has put."""
        asked = {"of_run": run_id, "of_epoch": epoch}

        def work(connection: Connection) -> None:
            used: set[tuple[int, str]] = set()
            dropped = []
            for row in connection.execute(_UP_TO, asked):
                if row.key in keys:
                    used.update((row.epoch, digest) for digest in json.loads(row.pieces))
                else:
                    dropped.append({"of_run": run_id, "of_key": row.key})
            known = {(row.epoch, row.digest) for row in connection.execute(_KNOWN, asked)}
            useless = [
                {"of_run": run_id, "of_epoch": made, "of_digest": digest}
                for made, digest in known - used
            ]
            if dropped:
                connection.execute(_DROP, dropped)
            if useless:
                connection.execute(_DROP_PIECE, useless)

        await self._database.write(work)

    async def forget(self, run_id: RunId) -> None:
        """Drop all parts of a run."""
        await self._forget([run_id])

    async def sweep(self) -> int:
        """Drop parts of runs that have ended or are gone, of some runs; returns of how many."""
        over = await self._database.read(lambda conn: conn.scalars(_OVER).all())
        await self._forget(over)
        return len(over)

    async def _forget(self, run_ids: Sequence[str]) -> None:
        rows = [{"of_run": run_id} for run_id in run_ids]

        def work(connection: Connection) -> None:
            for statement in _FORGET:
                connection.execute(statement, rows)

        if rows:
            await self._database.write(work)

    async def _find(self, run_id: RunId, key: str) -> RowMapping | None:
        asked = {"of_run": run_id, "of_key": key}
        return await self._database.read(lambda conn: conn.execute(_FIND, asked).mappings().first())

    async def _fetched(self, run_id: RunId, epoch: int, wanted: set[str]) -> dict[str, bytes]:
        asked = {"of_run": run_id, "of_epoch": epoch, "wanted": list(wanted)}
        rows = await self._database.read(lambda conn: conn.execute(_PIECES, asked).all())
        return {row.digest: row.data for row in rows}

    async def _known(self, part: Part) -> set[str]:
        asked = {"of_run": part.run_id, "of_epoch": part.epoch}
        rows = await self._database.read(lambda conn: conn.execute(_KNOWN, asked).all())
        return {row.digest for row in rows if row.epoch == part.epoch}

    async def _write(self, part: Part, new: Mapping[str, bytes]) -> None:
        if not new:
            return
        rows = await asyncio.to_thread(_packed, part, new)
        await self._database.write(lambda conn: conn.execute(_PUT, rows))


def _note(piece: bytes, named: list[str], waiting: dict[str, bytes], known: set[str]) -> None:
    digest = _digest(piece)
    named.append(digest)
    if digest not in known:
        waiting[digest] = piece


def _digest(piece: bytes) -> str:
    return hashlib.sha256(piece).hexdigest()


def _packed(part: Part, new: Mapping[str, bytes]) -> list[dict[str, Any]]:
    named = {"run_id": part.run_id, "epoch": part.epoch}
    return [
        {**named, "digest": digest, "data": zlib.compress(piece, _FAST)}
        for digest, piece in new.items()
    ]


def _unpacked(digest: str, data: bytes) -> bytes:
    try:
        piece = zlib.decompressobj().decompress(data, LARGEST)
    except zlib.error:
        piece = b""
    if _digest(piece) != digest:
        raise StoreError("A piece of a checkpoint is not what was put there.")
    return piece
