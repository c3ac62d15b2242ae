"""Quick writes are done in the turn in which they come, and wait for the disk beside."""

import asyncio
import sqlite3
from contextlib import asynccontextmanager, closing

import pytest

from turnout.errors import StoreError
from turnout.store.database import open_database
from turnout.store.quick import QuickWrite, QuickWrites


def put(key):
    """Return a write of one row, which says so."""

    def work(cursor):
        cursor.execute("INSERT INTO probes VALUES (?, '')", [key])
        return key

    return work


def rows(path):
    """Return what another process sees."""
    with closing(sqlite3.connect(path)) as other:
        return [key for (key,) in other.execute("SELECT key FROM probes ORDER BY key")]


@pytest.fixture
def path(tmp_path):
    """Return where the database is to be."""
    return tmp_path / "turnout.db"


async def test_writes_of_one_turn_share_one_transaction(path):
    """Each gets its own result."""
    begun = []
    async with open_database(path) as database:
        await database.quick(put("a"), durable=False)
        database._quick._connection.set_trace_callback(
            lambda sql: begun.append(sql) if sql.startswith("BEGIN") else None
        )
        writes = (database.quick(put(key), durable=key != "c") for key in "bcd")
        assert await asyncio.gather(*writes) == ["b", "c", "d"]
        assert rows(path) == ["a", "b", "c", "d"]
    assert len(begun) == 1


@asynccontextmanager
async def quick_on(path, sync):
    """Yield what writes quickly, with another way to wait for the disk."""
    async with open_database(path) as database:
        writes = QuickWrites(
            path,
            wait_for_disk=True,
            otherwise=database._do_ordinarily,
            checkpoint=lambda: None,
            sync=sync,
        )

        def write(key, *, durable):
            done = asyncio.get_running_loop().create_future()
            writes.add(QuickWrite(put(key), durable, None, False, done))
            return done

        yield write
        await writes.close()


async def test_only_a_durable_write_waits_for_the_disk(path):
    """And one wait is enough for all that were committed before it."""
    synced = []
    async with quick_on(path, synced.append) as write:
        await write("a", durable=False)
        assert synced == []
        await asyncio.gather(*(write(f"b{n}", durable=True) for n in range(9)))
        assert len(synced) == 1
    assert len(rows(path)) == 10


async def test_a_disk_that_fails_is_named(path):
    """Whoever waits for it is told; what need not be durable goes on."""

    def broken(_):
        raise OSError(5, "Input/output error")

    async with quick_on(path, broken) as write:
        with pytest.raises(StoreError, match=r"did not reach the disk: Input/output error\. Check"):
            await write("a", durable=True)
        assert await write("b", durable=False) == "b"


async def test_where_another_process_writes_the_ordinary_way_waits_for_it(path):
    """The event loop does not."""
    async with open_database(path) as database:
        await database.quick(put("a"), durable=False)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            writing = asyncio.create_task(database.quick(put("b"), durable=True))
            async with asyncio.timeout(1):
                for _ in range(10):
                    await asyncio.sleep(0.005)
            assert not writing.done()
            other.execute("COMMIT")
        assert await writing == "b"
    assert rows(path) == ["a", "b"]


async def test_a_lock_that_is_never_given_back_is_named(path):
    """After the time that the ordinary way waits."""
    async with open_database(path, busy_timeout=0.05) as database:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError, match="locked by another process"):
                await database.quick(put("a"), durable=True)


async def test_one_that_fails_leaves_the_others_of_its_turn_alone(path):
    """And its own error comes out."""
    async with open_database(path) as database:
        writes = (database.quick(put(key), durable=True) for key in ("a", "b", "b", "c"))
        results = await asyncio.gather(*writes, return_exceptions=True)
    assert [one for one in results if isinstance(one, str)] == ["a", "b", "c"]
    (error,) = (one for one in results if isinstance(one, Exception))
    assert "UNIQUE" in str(error)
    assert rows(path) == ["a", "b", "c"]


async def test_the_log_does_not_grow_for_ever(path):
    """It is moved into the database now and then, without a wait on the event loop."""
    log = path.with_name("turnout.db-wal")
    async with open_database(path, durability="full") as database:
        sizes = []
        for turn in range(3):
            for number in range(300):
                key = f"{turn}-{number}" + "x" * 2_000
                await database.quick(put(key), durable=number % 100 == 0)
            await asyncio.gather(
                *(database.quick(put(f"{turn}+{n}"), durable=True) for n in range(256))
            )
            # The lane has done what it was asked for.
            await database.write(lambda _: None)
            sizes.append(log.stat().st_size)
    assert sizes[2] < 2 * sizes[0]
