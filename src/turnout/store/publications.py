"""How far the branches, drafts and words to forges of runs are."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping, insert, select, update

from turnout.core.govern.happenings import Happening
from turnout.core.ids import RunId
from turnout.core.service.orders import Order
from turnout.core.service.publications import Publication
from turnout.errors import ConflictError
from turnout.store.database import Database
from turnout.store.happenings import record
from turnout.store.schema import orders, publications

__all__ = ["PublicationsStore", "add_publication", "ask_publication"]


def add_publication(connection: Connection, run_id: RunId, order: Order, at: datetime) -> None:
    """Keep, in the transaction of an order, that something is to become of its run outside."""
    if order.publishes is not None or order.origin is not None:
        row = _row(Publication(run_id, order.project, at))
        connection.execute(insert(publications), row)


def ask_publication(connection: Connection, run_id: RunId, order: Order, at: datetime) -> None:
    """Have the diff of a run that has ended published as its order says now.

    `ConflictError` where that was done before.
    """
    mine = publications.c.run_id == run_id
    row = connection.execute(select(publications).where(mine)).mappings().first()
    if row is None:
        add_publication(connection, run_id, order, at)
        return
    known = _read(row)
    if known.commit and (known.link or order.publishes == "branch"):
        raise ConflictError(f"The diff of run {run_id} is published already: {known.branch}.")
    again = replace(known, state="due", due_at=at, detail="", tries=0)
    connection.execute(update(publications).where(mine).values(_row(again)))


class PublicationsStore:
    """Publications by run; those of runs that have not ended wait."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, now: datetime, *, limit: int, seconds: float) -> Sequence[Publication]:
        """Return what is due of runs that have ended, for so many seconds nobody else's."""
        due = (
            select(publications)
            .join(orders, orders.c.run_id == publications.c.run_id)
            .where(
                publications.c.state == "due",
                publications.c.due_at <= now,
                orders.c.state == "ended",
            )
            .order_by(publications.c.due_at)
            .limit(limit)
        )
        if not await self._database.read(lambda connection: connection.execute(due).first()):
            # Most of the time nothing is due, and no lock is taken.
            return ()

        def work(connection: Connection) -> Sequence[Publication]:
            locked = due.with_for_update(of=publications, skip_locked=True)
            found = [_read(row) for row in connection.execute(locked).mappings()]
            mine = publications.c.run_id.in_([each.run_id for each in found])
            until = now + timedelta(seconds=seconds)
            connection.execute(update(publications).where(mine).values(due_at=until))
            return found

        return await self._database.write(work)

    async def save(self, publication: Publication, told: Happening | None = None) -> None:
        """Keep how far one is, and what is told of it, in one; one that is over stays as it is."""

        def work(connection: Connection) -> None:
            still = update(publications).where(
                publications.c.run_id == publication.run_id, publications.c.state == "due"
            )
            changed = connection.execute(still.values(_row(publication))).rowcount
            if changed and told is not None:
                record(connection, (told,))

        await self._database.write(work)

    async def of(self, run_ids: Collection[RunId]) -> Mapping[RunId, Publication]:
        """Return those of some runs; a run that has none is left out."""
        wanted = select(publications).where(publications.c.run_id.in_(list(run_ids)))
        rows = await self._database.read(
            lambda connection: connection.execute(wanted).mappings().all()
        )
        return {RunId(row["run_id"]): _read(row) for row in rows}


def _row(publication: Publication) -> dict[str, Any]:
    return {
        "run_id": publication.run_id,
        "project": publication.project,
        "state": publication.state,
        "due_at": publication.due_at,
        "branch": publication.branch,
        "pushed": publication.commit,
        "link": publication.link,
        "detail": publication.detail,
        "tries": publication.tries,
    }


def _read(row: RowMapping) -> Publication:
    return Publication(
        run_id=RunId(row["run_id"]),
        project=row["project"],
        due_at=row["due_at"],
        state=row["state"],
        branch=row["branch"],
        commit=row["pushed"],
        link=row["link"],
        detail=row["detail"],
        tries=row["tries"],
    )
