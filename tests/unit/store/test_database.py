import asyncio
import sqlite3
import stat
import sys
import time
from contextlib import closing

import pytest
from sqlalchemy import insert, select
from tests.samples import NOON

from turnout.errors import ConfigError, StoreError
from turnout.store.database import open_database
from turnout.store.probes import ProbesStore
from turnout.store.schema import events, probes


def put(key):
    """Return a write of one row."""
    return lambda connection: connection.execute(insert(probes), {"key": key, "text": ""})


def keys(connection):
    """Return the rows that `put` wrote."""
    return sorted(connection.scalars(select(probes.c.key)))


async def test_a_new_file_is_its_owners_alone(tmp_path):
    """Prompts and code are on record; the files beside it inherit its mode."""
    async with open_database(tmp_path / "new" / "turnout.db"):
        modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").iterdir()}
    assert modes == {0o600}


async def test_what_was_written_is_there_when_opened_again(tmp_path):
    """By path or by URL."""
    async with open_database(tmp_path / "turnout.db") as database:
        await database.write(put("a"))
    async with open_database(f"sqlite:///{tmp_path}/turnout.db") as database:
        assert await database.read(keys) == ["a"]


@pytest.mark.parametrize("where", ["", ":memory:", "mysql://ann:s3cret@somewhere/x"])
async def test_a_place_that_is_no_database_of_ours_is_refused(where):
    """Before anything is created; no password is shown."""
    with pytest.raises(ConfigError, match="Give the path of a file") as raised:
        async with open_database(where):
            pass
    assert "s3cret" not in str(raised.value)


async def test_a_server_that_is_not_there_is_named_without_its_password(tmp_path):
    """With what is wrong."""
    where = f"postgresql://ann:s3cret@/turnout?host={tmp_path}"
    with pytest.raises(StoreError, match="postgresql") as raised:
        async with open_database(where, busy_timeout=1.0):
            pass
    assert "s3cret" not in str(raised.value)
    assert "TURNOUT_DATABASE" in raised.value.mend


async def test_a_url_that_cannot_be_read_is_refused():
    """It may hold a password, so it is not shown."""
    with pytest.raises(ConfigError, match="cannot be read") as raised:
        async with open_database("postgresql://ann:s3cret@host:port/x"):
            pass
    assert "s3cret" not in str(raised.value)


async def test_a_failing_write_leaves_its_neighbours_alone(tmp_path):
    """Although writes that wait together share a commit."""
    async with open_database(tmp_path / "turnout.db") as database:
        writes = (database.write(put(key)) for key in ("a", "b", "b", "c"))
        results = await asyncio.gather(*writes, return_exceptions=True)
        assert [isinstance(one, Exception) for one in results] == [False, False, True, False]
        assert await database.read(keys) == ["a", "b", "c"]


async def test_a_write_that_raises_undoes_all_that_it_did(tmp_path):
    """And its own error comes out."""

    def work(connection):
        put("a")(connection)
        raise LookupError("changed my mind")

    async with open_database(tmp_path / "turnout.db") as database:
        with pytest.raises(LookupError, match="changed my mind"):
            await database.write(work)
        assert await database.read(keys) == []


async def test_a_cancelled_write_that_has_not_begun_never_happens(tmp_path):
    """The others in its group are committed."""
    async with open_database(tmp_path / "turnout.db") as database:
        tasks = [asyncio.create_task(database.write(put(key))) for key in "ab"]
        tasks[0].cancel()
        await asyncio.wait(tasks)
        assert await database.read(keys) == ["b"]


async def test_closing_finishes_what_was_asked_for(tmp_path):
    """A write in flight is committed, not lost."""
    async with open_database(tmp_path / "turnout.db") as database:
        task = asyncio.create_task(database.write(put("a")))
        await asyncio.sleep(0)
    await task
    async with open_database(tmp_path / "turnout.db") as database:
        assert await database.read(keys) == ["a"]


async def test_foreign_keys_hold(tmp_path):
    """An event without a run is a bug that the database itself refuses."""
    row = {"run_id": "run-0", "seq": 1, "at": NOON, "epoch": 1, "payload": "{}"}
    async with open_database(tmp_path / "turnout.db") as database:
        with pytest.raises(StoreError, match="FOREIGN KEY"):
            await database.write(lambda connection: connection.execute(insert(events), row))


@pytest.mark.parametrize(("durability", "level"), [("full", 2), ("normal", 1)])
async def test_durability_is_a_setting(tmp_path, durability, level):
    """Full unless told otherwise; always with a write-ahead log."""
    async with open_database(tmp_path / "turnout.db", durability=durability) as database:
        for pragma, value in (("synchronous", level), ("journal_mode", "wal")):
            statement = f"PRAGMA {pragma}"
            found = await database.write(lambda c, s=statement: c.exec_driver_sql(s).scalar())
            assert found == value


async def test_a_lock_held_by_another_process_is_named(tmp_path):
    """After the busy time-out, with what to do."""
    path = tmp_path / "turnout.db"
    async with open_database(path, busy_timeout=0.01) as database:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError, match=r"locked by another process\. Wait"):
                await ProbesStore(database).put("a", "1")
            assert await ProbesStore(database).get("a") is None


async def test_a_file_that_is_opened_twice_here_stays_shared_with_other_processes(tmp_path):
    """Closing a file drops the locks of the whole process: another one would clear our log away."""
    path = tmp_path / "turnout.db"
    code = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT * FROM probes')"
    async with open_database(path) as first, open_database(path):
        await first.write(put("a"))
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, str(path))
        assert await process.wait() == 0
        await first.write(put("b"))
        with closing(sqlite3.connect(path)) as seen:
            assert seen.execute("SELECT count(*) FROM probes").fetchone() == (2,)


async def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path):
    """Somebody else's file is not ours to overwrite."""
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to have a header\n" * 99)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"is not a database of Turnout\. Move it away"):
        async with open_database(path):
            pass
    assert path.read_bytes() == before


async def test_a_damaged_database_is_named(tmp_path):
    """With the way out."""
    path = tmp_path / "turnout.db"
    async with open_database(path):
        pass
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    with pytest.raises(StoreError, match=r"is damaged\. Move it away"):
        async with open_database(path) as database:
            await database.write(put("a"))


async def test_a_folder_in_the_files_place_is_named(tmp_path):
    """It cannot be opened, and the mend says so."""
    with pytest.raises(StoreError, match=r"cannot be opened: .*writable"):
        async with open_database(tmp_path):
            pass


async def test_two_that_open_a_new_file_at_once_both_succeed(tmp_path):
    """One migrates it; the other finds it done."""
    path = tmp_path / "turnout.db"
    code = (
        "import asyncio, sys\n"
        "from turnout.store.database import open_database\n"
        "async def main():\n"
        "    async with open_database(sys.argv[1]): pass\n"
        "asyncio.run(main())\n"
    )
    started = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", code, str(path))
        for _ in range(3)
    ]
    assert [await process.wait() for process in started] == [0, 0, 0]


async def test_a_relaxed_write_does_not_wait_for_the_disk_and_the_next_one_does(tmp_path):
    """Only where all that are committed together are relaxed."""
    level = []

    def note(connection):
        level.append(connection.exec_driver_sql("PRAGMA synchronous").scalar())

    async with open_database(tmp_path / "turnout.db") as database:
        await database.write(note, relaxed=True)
        await database.write(note)
        await asyncio.gather(database.write(note, relaxed=True), database.write(note))
    assert level[:2] == [1, 2]
    assert set(level[2:]) == {2} or level[2:] == [1, 2]


@pytest.mark.parametrize("together", [1, 5])
async def test_a_lock_is_waited_for_once(tmp_path, together):
    """Writes that could not even begin have nothing to gain from a second try, each alone."""
    path = tmp_path / "turnout.db"
    async with open_database(path, busy_timeout=0.5) as database:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            began = time.monotonic()
            writes = (database.write(put(f"{number}")) for number in range(together))
            failures = await asyncio.gather(*writes, return_exceptions=True)
            assert time.monotonic() - began < 1.4
        assert all("locked" in str(failure) for failure in failures)


async def test_a_write_of_a_group_that_fails_is_done_though_its_caller_is_gone(tmp_path):
    """Where it is a sure one."""
    async with open_database(tmp_path / "turnout.db") as database:
        tasks = [asyncio.create_task(database.write(put(k), sure=True)) for k in ("a", "b", "b")]
        await asyncio.sleep(0)
        tasks[0].cancel()
        await asyncio.wait(tasks)
        assert await database.read(keys) == ["a", "b"]


async def test_what_was_done_for_a_caller_that_has_gone_is_told(tmp_path):
    """So that it can be taken back; a write that never happened is not told."""
    told, heard = [], []

    def work(key):
        return lambda connection: (put(key)(connection), key)[1]

    async with open_database(tmp_path / "turnout.db") as database:
        for turns in range(20):
            writing = asyncio.create_task(database.write(work(f"{turns}"), unheard=told.append))
            for _ in range(turns):
                await asyncio.sleep(0.0001)
            writing.cancel()
            await asyncio.wait({writing})
            if not writing.cancelled():
                heard.append(writing.result())
        written = await database.write(keys)
    assert sorted(told + heard) == written
    assert "19" in written
