"""The use of sandboxes, a line for each time that a record tells of it."""

from collections.abc import Iterable
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, func, insert, select

from turnout.core.events import Entry, ResourcesUsed
from turnout.core.govern.usage import MachineFigures, UsageQuery
from turnout.core.ids import RunId
from turnout.core.money import Micros
from turnout.errors import NotFoundError
from turnout.store.ordered import one
from turnout.store.schema import machine_use

__all__ = ["COMMAND", "machine_figures", "note_use"]

COMMAND: Final = ("default", "agent")
"""Project and key of runs that a command works on itself."""


def note_use(connection: Connection, entries: Iterable[Entry]) -> None:
    """Write down what entries tell of sandboxes, in the transaction that appends them."""
    for entry in entries:
        if isinstance(entry.event, ResourcesUsed):
            connection.execute(insert(machine_use), _row(connection, entry, entry.event))


def machine_figures(connection: Connection, query: UsageQuery) -> MachineFigures:
    """Add up what sandboxes used, of the runs that a query of usage is about."""
    table = machine_use.c
    sums = select(
        func.count().label("segments"),
        func.sum(table.cpu_ms).label("cpu_ms"),
        func.sum(table.memory_mib_ms).label("memory_mib_ms"),
        func.max(table.peak_memory_bytes).label("peak"),
        func.sum(table.cost).label("cost"),
    ).where(*_filters(query))
    row = connection.execute(sums).one()
    return MachineFigures(
        segments=int(row.segments),
        cpu_seconds=int(row.cpu_ms or 0) / 1_000,
        memory_mib_seconds=int(row.memory_mib_ms or 0) / 1_000,
        peak_memory_bytes=None if row.peak is None else int(row.peak),
        cost=Micros(int(row.cost or 0)),
    )


def _filters(query: UsageQuery) -> list[ColumnElement[bool]]:
    table = machine_use.c
    conditions = [
        column == wanted
        for column, wanted in (
            (table.run_id, query.session),
            (table.key, query.key),
            (table.project, query.project),
        )
        if wanted is not None
    ]
    if query.since is not None:
        conditions.append(table.at >= query.since)
    if query.until is not None:
        conditions.append(table.at < query.until)
    return conditions


def _row(connection: Connection, entry: Entry, used: ResourcesUsed) -> dict[str, Any]:
    project, key = _charged_to(connection, entry.run_id)
    return {
        "run_id": entry.run_id,
        "seq": entry.seq,
        "at": entry.at,
        "project": project,
        "key": key,
        "cpu_ms": _thousandths(used.cpu_seconds),
        "memory_mib_ms": _thousandths(used.memory_mib_seconds),
        "peak_memory_bytes": used.peak_memory_bytes,
        "cost": used.cost,
    }


def _charged_to(connection: Connection, run_id: RunId) -> tuple[str, str]:
    try:
        order = one(connection, run_id).order
    except NotFoundError:
        return COMMAND
    return order.project, order.key


def _thousandths(value: float | None) -> int | None:
    return None if value is None else round(value * 1_000)
