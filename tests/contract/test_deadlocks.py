"""Transactions that lock each other's lines."""

import asyncio
import threading

import pytest
from sqlalchemy import text
from tests import databases

_TAKE = text("UPDATE lines SET taken = taken + 1 WHERE name = :name")
_ALL = text("SELECT name, taken FROM lines ORDER BY name")
_SOON = text("SET LOCAL deadlock_timeout = '50ms'")


@pytest.fixture
def url(request, tmp_path):
    """Hand out a database of the kind that locks lines, not the whole file."""
    with databases.url_of("postgresql", request, tmp_path) as each:
        with databases.connected(each) as connection:
            connection.execute(text("CREATE TABLE lines (name text PRIMARY KEY, taken int)"))
            connection.execute(text("INSERT INTO lines VALUES ('one', 0), ('two', 0)"))
        yield each


async def test_a_transaction_that_was_undone_to_end_a_deadlock_is_done_again(url):
    """Nobody hears of it: both are committed, once each."""
    both_have_one = threading.Barrier(2)
    tried = []

    def taking(*names):
        def work(connection):
            connection.execute(_SOON)
            tried.append(names)
            connection.execute(_TAKE, {"name": names[0]})
            if len(tried) <= 2:
                both_have_one.wait(timeout=20)
            connection.execute(_TAKE, {"name": names[1]})
            return names

        return work

    async with databases.opened(url) as here, databases.opened(url) as there:
        async with asyncio.timeout(30):
            writes = here.write(taking("one", "two")), there.write(taking("two", "one"))
            assert await asyncio.gather(*writes) == [("one", "two"), ("two", "one")]
        rows = await here.read(lambda connection: connection.execute(_ALL).all())
    assert len(tried) == 3
    assert [tuple(row) for row in rows] == [("one", 2), ("two", 2)]
