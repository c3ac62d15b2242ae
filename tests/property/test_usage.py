"""What the databases add up is what adding receipts up one by one gives."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import get_args

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, insert
from tests import databases
from tests.samples import NOON, STRANGE, receipt

from turnout.core.govern.usage import MOST_GROUPS, UsageGroup, UsageQuery
from turnout.core.inference import Objective, StepKind, TaskKind
from turnout.core.receipts import Operation, ReceiptStatus, WireShape, encode_receipt
from turnout.core.usage import Usage
from turnout.store.database import Database
from turnout.store.receipts import receipt_row
from turnout.store.schema import receipts
from turnout.store.usage import UsageStore
from turnout.testing.memory.noticed import MemoryUsage

SESSIONS = st.sampled_from([None, "a", "b", STRANGE])
KEYS = st.sampled_from(["", "k", "l"])
PROJECTS = st.sampled_from(["default", "p"])
MOMENTS = st.integers(-100, 100).map(lambda hours: NOON + timedelta(hours=hours))
NUMBERS = st.one_of(st.integers(0, 9), st.integers(0, 2**40))
SAMPLE = receipt()
TIMES = ("latency_p50_ms", "latency_p95_ms", "ttft_p50_ms", "ttft_p95_ms")
UNTIMED: dict[str, None] = dict.fromkeys(TIMES)


@st.composite
def any_receipt(draw):
    """Return one that has groups in common with others, refused ones included."""
    routing, decision = SAMPLE.routing, SAMPLE.decision
    objective, task = (
        draw(st.sampled_from(get_args(Objective))),
        draw(st.sampled_from(get_args(TaskKind))),
    )
    served = draw(st.booleans())
    model = draw(st.sampled_from(["m", "n"]))
    return replace(
        SAMPLE,
        at=draw(MOMENTS),
        session=draw(SESSIONS),
        key=draw(KEYS),
        project=draw(PROJECTS),
        policy=draw(st.sampled_from(["", "default"])),
        status=draw(st.sampled_from(["ok", "ok", "ok", *get_args(ReceiptStatus)])),
        operation=draw(st.sampled_from(["answer", "answer", *get_args(Operation)])),
        replay_of=draw(st.sampled_from([None, None, None, "req-0"])),
        shape=draw(st.sampled_from(get_args(WireShape))),
        call_kind=draw(st.sampled_from([None, *get_args(StepKind)])),
        decision=draw(st.sampled_from([None, replace(decision, objective=objective, task=task)])),
        routing=replace(routing, model=model, deployment=f"x/{model}", fallback=draw(st.booleans()))
        if served
        else None,
        attempts=draw(st.sampled_from([(), SAMPLE.attempts])),
        usage=Usage(draw(NUMBERS), draw(NUMBERS), draw(NUMBERS)),
        cost_micros=draw(st.one_of(st.none(), NUMBERS)),
        latency_ms=draw(st.integers(0, 2**40)),
        ttft_ms=draw(st.one_of(st.none(), st.integers(0, 2**40))),
        repairs=draw(st.sampled_from([(), ("mended",), ("mended", "again")])),
    )


def some_receipts():
    """Return as many as few: the longer lists are where percentiles go wrong."""
    return st.integers(0, 40).flatmap(
        lambda number: st.lists(any_receipt(), min_size=number, max_size=number)
    )


@st.composite
def any_query(draw):
    """Return one that may leave some of them out."""
    groups = st.lists(
        st.sampled_from(get_args(UsageGroup)), min_size=1, max_size=MOST_GROUPS, unique=True
    )
    return UsageQuery(
        by=tuple(draw(groups)),
        since=draw(st.one_of(st.none(), MOMENTS)),
        until=draw(st.one_of(st.none(), MOMENTS)),
        session=draw(st.one_of(st.none(), SESSIONS)),
        key=draw(st.one_of(st.none(), KEYS)),
        project=draw(st.one_of(st.none(), PROJECTS)),
        limit=1_000,
    )


@contextmanager
def database_at(url: str) -> Iterator[tuple[asyncio.Runner, Database]]:
    """Open a database for the examples of one test, and what runs their coroutines."""
    with asyncio.Runner() as runner:
        opening = databases.opened(url)
        database = runner.run(opening.__aenter__())
        try:
            yield runner, database
        finally:
            runner.run(opening.__aexit__(None, None, None))


@pytest.fixture(params=databases.KINDS)
def url(request, tmp_path) -> Iterator[str]:
    """Hand out an empty database of each kind."""
    with databases.url_of(request.param, request, tmp_path) as made:
        yield made


def test_the_database_adds_up_what_the_receipts_say(url):
    """Sums, percentiles by nearest rank and groups, under every filter; None is a group too."""
    with database_at(url) as (runner, database):
        # Not made smaller where it fails: each example fills a database.
        @settings(deadline=None, max_examples=60, phases=set(Phase) - {Phase.shrink})
        @given(some_receipts(), any_query())
        def check(made, query):
            named = {f"req-{n}": replace(one, request_id=f"req-{n}") for n, one in enumerate(made)}
            rows = [{**receipt_row(one), "payload": encode_receipt(one)} for one in named.values()]

            def fill(connection):
                connection.execute(delete(receipts))
                if rows:
                    connection.execute(insert(receipts), rows)

            runner.run(database.write(fill))
            found = runner.run(UsageStore(database).usage(query))
            wanted = runner.run(MemoryUsage(named).usage(query))
            assert found.total == wanted.total
            assert found.groups == wanted.groups
            assert {row.group: row.figures for row in found.rows} == {
                row.group: row.figures for row in wanted.rows
            }
            costs = [(-row.figures.cost, -row.figures.requests) for row in found.rows]
            assert costs == sorted(costs)
            few = runner.run(UsageStore(database).usage(replace(query, limit=3)))
            assert (few.rows, few.total, few.groups) == (found.rows[:3], found.total, found.groups)
            sums = runner.run(UsageStore(database).usage(replace(query, durations=False)))
            assert sums.total == replace(found.total, **UNTIMED)
            assert [row.figures for row in sums.rows] == [
                replace(row.figures, **UNTIMED) for row in found.rows
            ]

        check()


@pytest.mark.parametrize(
    ("number", "p50", "p95"),
    [(1, 1, 1), (2, 1, 2), (3, 2, 3), (4, 2, 4), (20, 10, 19), (100, 50, 95)],
)
def test_a_percentile_is_a_value_that_was_measured(url, number, p50, p95):
    """The smallest that so many of them do not exceed; written in any order."""
    made = [replace(receipt(f"req-{n}"), latency_ms=n, ttft_ms=n) for n in range(1, number + 1)]
    rows = [{**receipt_row(one), "payload": encode_receipt(one)} for one in reversed(made)]
    with database_at(url) as (runner, database):
        runner.run(database.write(lambda connection: connection.execute(insert(receipts), rows)))
        found = runner.run(UsageStore(database).usage(UsageQuery()))
    for figures in (found.total, found.rows[0].figures):
        assert (figures.latency_p50_ms, figures.latency_p95_ms) == (p50, p95)
        assert (figures.ttft_p50_ms, figures.ttft_p95_ms) == (p50, p95)


def test_a_limit_keeps_the_most_expensive_groups(url):
    """The total counts the others as well, and says how many there are."""
    made = [
        replace(receipt(f"req-{n}", session=f"s{n}"), cost_micros=10 * n, latency_ms=n)
        for n in range(1, 6)
    ]
    rows = [{**receipt_row(one), "payload": encode_receipt(one)} for one in made]
    with database_at(url) as (runner, database):
        runner.run(database.write(lambda connection: connection.execute(insert(receipts), rows)))
        found = runner.run(UsageStore(database).usage(UsageQuery(limit=2)))
    assert [row.group for row in found.rows] == [("s5",), ("s4",)]
    assert (found.groups, found.total.cost, found.total.requests) == (5, 150, 5)
