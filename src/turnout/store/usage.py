"""Usage, added up from the receipts."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Row,
    Select,
    Subquery,
    and_,
    case,
    func,
    literal,
    null,
    select,
    union_all,
)

from turnout.core.govern.usage import (
    MachineFigures,
    UsageFigures,
    UsageQuery,
    UsageReport,
    UsageRow,
)
from turnout.core.money import Micros
from turnout.store.database import Database
from turnout.store.machines import machine_figures
from turnout.store.schema import receipts

__all__ = ["UsageStore"]

_PERCENTILES = (("latency_ms", 50), ("latency_ms", 95), ("ttft_ms", 50), ("ttft_ms", 95))
_SUMMED = ("input_tokens", "output_tokens", "cached_tokens", "cost", "fallback")
_STATUSES = ("refused", "failed", "truncated", "cancelled", "unknown")


class UsageStore:
    """Reads what every receipt is counted under; all figures are made in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def usage(self, query: UsageQuery) -> UsageReport:
        """Return the groups of a query and their total, as of one moment."""
        statement = _statement(query)

        def work(connection: Connection) -> tuple[Sequence[Row[Any]], MachineFigures]:
            return connection.execute(statement).all(), machine_figures(connection, query)

        found, machines = await self._database.read(work)
        total, *rows = sorted(found, key=lambda row: int(row.place))
        groups = int(rows[0].groups) if rows else 0
        width = len(query.by)
        listed = tuple(UsageRow(tuple(row[:width]), _figures(row)) for row in rows)
        return UsageReport(listed, _figures(total), groups, machines)


def _statement(query: UsageQuery) -> Select[Any]:
    """Return one statement for rows and total, which therefore never contradict each other."""
    names = [f"group_{place}" for place in range(len(query.by))]
    grouped = _ranked(query, [receipts.c[name] for name in query.by], names)
    cost = func.coalesce(func.sum(grouped.c.cost), 0)
    order = (cost.desc(), func.count().desc(), *(grouped.c[name] for name in names))
    rows = (
        select(
            *(grouped.c[name] for name in names),
            func.row_number().over(order_by=order).label("place"),
            func.count().over().label("groups"),
            *_sums(grouped),
        )
        .group_by(*(grouped.c[name] for name in names))
        .order_by("place")
        .limit(query.limit)
        .subquery()
    )
    everything = _ranked(query, [], [])
    total = select(
        *(
            null().cast(receipts.c[by].type).label(name)
            for by, name in zip(query.by, names, strict=True)
        ),
        literal(0).label("place"),
        literal(0).label("groups"),
        *_sums(everything),
    ).subquery()
    both = union_all(select(rows), select(total)).subquery()
    return select(both)


def _ranked(
    query: UsageQuery, groups: Sequence[ColumnElement[Any]], names: Sequence[str]
) -> Subquery:
    """Return the receipts of a query, each with its rank among the durations of its group."""
    table = receipts.c
    columns = [column.label(name) for column, name in zip(groups, names, strict=True)]
    for duration in (table.latency_ms, table.ttft_ms):
        # Those without one come last, so that ranks count the others from 1.
        rank = func.row_number().over(
            partition_by=groups or None, order_by=(duration.is_(None), duration)
        )
        of = func.count(duration).over(partition_by=groups or None)
        columns += [rank.label(f"{duration.name}_rank"), of.label(f"{duration.name}_of")]
    wanted = [table[name] for name in (*_SUMMED, "status", "repairs", "latency_ms", "ttft_ms")]
    return select(*columns, *wanted).where(*_filters(query)).subquery()


def _filters(query: UsageQuery) -> list[ColumnElement[bool]]:
    table, conditions = receipts.c, list[ColumnElement[bool]]()
    if query.since is not None:
        conditions.append(table.at >= query.since)
    if query.until is not None:
        conditions.append(table.at < query.until)
    for column, wanted in (
        (table.session, query.session),
        (table.key, query.key),
        (table.project, query.project),
    ):
        if wanted is not None:
            conditions.append(column == wanted)
    return conditions


def _sums(ranked: Subquery) -> list[ColumnElement[Any]]:
    column = ranked.c
    return [
        func.count().label("requests"),
        *(_number_of(column.status == status).label(status) for status in _STATUSES),
        *(func.sum(column[name]).label(name) for name in _SUMMED),
        _number_of(column.cost.is_(None)).label("unpriced"),
        _number_of(column.repairs > 0).label("repaired"),
        *(_percentile(ranked, name, p).label(f"{name}_p{p}") for name, p in _PERCENTILES),
    ]


def _number_of(condition: ColumnElement[bool]) -> ColumnElement[Any]:
    return func.sum(case((condition, 1), else_=0).cast(Integer))


def _percentile(ranked: Subquery, name: str, percent: int) -> ColumnElement[Any]:
    value, rank, of = ranked.c[name], ranked.c[f"{name}_rank"], ranked.c[f"{name}_of"]
    return func.min(case((and_(value.is_not(None), rank * 100 >= of * percent), value)))


def _figures(row: Row[Any]) -> UsageFigures:
    # PostgreSQL adds big integers up to a numeric.
    def number(name: str) -> int:
        return int(getattr(row, name) or 0)

    return UsageFigures(
        requests=number("requests"),
        refused=number("refused"),
        failed=number("failed"),
        truncated=number("truncated"),
        cancelled=number("cancelled"),
        unknown=number("unknown"),
        input_tokens=number("input_tokens"),
        output_tokens=number("output_tokens"),
        cached_tokens=number("cached_tokens"),
        cost=Micros(number("cost")),
        unpriced=number("unpriced"),
        fallbacks=number("fallback"),
        repaired=number("repaired"),
        latency_p50_ms=row.latency_ms_p50,
        latency_p95_ms=row.latency_ms_p95,
        ttft_p50_ms=row.ttft_ms_p50,
        ttft_p95_ms=row.ttft_ms_p95,
    )
