"""Usage, added up from the receipts."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Row,
    Select,
    case,
    func,
    literal,
    null,
    select,
    tuple_,
    union_all,
)

from turnout.core.govern.usage import (
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

_PERCENTS = (50, 95)
_SUMMED = ("input_tokens", "output_tokens", "cached_tokens", "cost", "fallback")
_STATUSES = ("refused", "failed", "truncated", "cancelled", "unknown")
_FIGURES = ("requests", *_STATUSES, *_SUMMED, "unpriced", "repaired")
_NAMED = 200
"""Groups that are asked for by name at most."""
_Group = tuple[str | None, ...]
_Times = dict[str, int | None]


class UsageStore:
    """Reads what every receipt is counted under; all figures are made in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def usage(self, query: UsageQuery) -> UsageReport:
        """Return the groups of a query and their total, as of one moment."""
        statement, width = _statement(query), len(query.by)

        def work(connection: Connection) -> UsageReport:
            found = connection.execute(statement).all()
            total, *rows = sorted(found, key=lambda row: int(row.place))
            count = int(rows[0].groups) if rows else 0
            listed = [tuple(row[:width]) for row in rows]
            whole = times = dict[_Group, _Times]()
            if query.durations:
                whole = _times_of(connection, query, ())
                times = _times_of(connection, query, _only(query, listed, count), grouped=True)
            groups = (
                UsageRow(group, _figures(row, times.get(group, {})))
                for group, row in zip(listed, rows, strict=True)
            )
            machines = machine_figures(connection, query)
            return UsageReport(tuple(groups), _figures(total, whole.get((), {})), count, machines)

        return await self._database.read(work)


def _statement(query: UsageQuery) -> Select[Any]:
    """Return one statement for rows and total, which therefore never contradict each other.

    It looks at each receipt once: the total is that of the groups.
    """
    columns, names = _columns(query), _names(query)
    grouped = select(*columns, *_sums()).where(*_filters(query)).group_by(*columns).cte("grouped")
    order = (
        func.coalesce(grouped.c.cost, 0).desc(),
        grouped.c.requests.desc(),
        *(grouped.c[name] for name in names),
    )
    rows = (
        select(
            *(grouped.c[name] for name in names),
            func.row_number().over(order_by=order).label("place"),
            func.count().over().label("groups"),
            *(grouped.c[name] for name in _FIGURES),
        )
        .order_by("place")
        .limit(query.limit)
        .subquery()
    )
    total = select(
        *(
            null().cast(receipts.c[by].type).label(name)
            for by, name in zip(query.by, names, strict=True)
        ),
        literal(0).label("place"),
        literal(0).label("groups"),
        *(func.sum(grouped.c[name]).label(name) for name in _FIGURES),
    ).subquery()
    both = union_all(select(rows), select(total)).subquery()
    return select(both)


def _names(query: UsageQuery) -> list[str]:
    return [f"group_{place}" for place in range(len(query.by))]


def _columns(query: UsageQuery) -> list[ColumnElement[Any]]:
    return [receipts.c[by].label(name) for by, name in zip(query.by, _names(query), strict=True)]


def _times_of(
    connection: Connection,
    query: UsageQuery,
    only: Sequence[ColumnElement[bool]],
    *,
    grouped: bool = False,
) -> dict[_Group, _Times]:
    """Return the percentiles of each group, or of all receipts together.

    Equal durations are counted first, so that what is put in order are values, not receipts.
    """
    columns, names = (_columns(query), _names(query)) if grouped else ([], [])
    found: dict[_Group, _Times] = {}
    for duration in (receipts.c.latency_ms, receipts.c.ttft_ms):
        known = [*_filters(query), *only, duration.is_not(None)]
        value, count = duration.label("value"), func.count().label("count")
        counted = select(*columns, value, count).where(*known).group_by(*columns, value).subquery()
        groups = [counted.c[name] for name in names]
        upto = func.sum(counted.c.count).over(partition_by=groups or None, order_by=counted.c.value)
        of = func.sum(counted.c.count).over(partition_by=groups or None)
        ranked = select(*groups, counted.c.value, upto.label("upto"), of.label("of")).subquery()
        within = [ranked.c[name] for name in names]
        least = (
            func.min(case((ranked.c.upto * 100 >= ranked.c.of * percent, ranked.c.value)))
            for percent in _PERCENTS
        )
        for row in connection.execute(select(*within, *least).group_by(*within)):
            times = found.setdefault(tuple(row[: len(names)]), {})
            for percent, least_of in zip(_PERCENTS, row[len(names) :], strict=True):
                times[f"{duration.name}_p{percent}"] = least_of
    return found


def _only(query: UsageQuery, listed: Sequence[_Group], count: int) -> Sequence[ColumnElement[bool]]:
    """Return what keeps to the groups that are listed, where others are many."""
    known = all(value is not None for group in listed for value in group)
    if count == len(listed) or len(listed) > _NAMED or not known:
        return ()
    return (tuple_(*(receipts.c[by] for by in query.by)).in_(listed),)


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


def _sums() -> list[ColumnElement[Any]]:
    table = receipts.c
    return [
        func.count().label("requests"),
        *(_number_of(table.status == status).label(status) for status in _STATUSES),
        *(func.sum(table[name]).label(name) for name in _SUMMED),
        _number_of(table.cost.is_(None)).label("unpriced"),
        _number_of(table.repairs > 0).label("repaired"),
    ]


def _number_of(condition: ColumnElement[bool]) -> ColumnElement[Any]:
    return func.sum(case((condition, 1), else_=0).cast(Integer))


def _figures(row: Row[Any], times: Mapping[str, int | None]) -> UsageFigures:
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
        latency_p50_ms=times.get("latency_ms_p50"),
        latency_p95_ms=times.get("latency_ms_p95"),
        ttft_p50_ms=times.get("ttft_ms_p50"),
        ttft_p95_ms=times.get("ttft_ms_p95"),
    )
