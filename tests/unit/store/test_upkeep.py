"""Looking at a database, bringing it up to date and copying it."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text
from tests.samples import NOON, STARTED

from turnout.core.ids import RunId
from turnout.errors import StoreError
from turnout.store.database import database_at, open_database
from turnout.store.record import RecordStore
from turnout.store.schema import HEAD
from turnout.store.upkeep import copy_database, dump_line, stands


def names(folder: Path, pattern: str) -> list[str]:
    """Return the names of what is in a folder."""
    return sorted(path.name for path in folder.glob(pattern))


async def revise(path: Path, revision: str) -> None:
    """Have the tables of a database named as those of another version."""
    database = database_at(path)
    statement = text("UPDATE alembic_version SET version_num = :revision")
    await database.write(lambda conn: conn.execute(statement, {"revision": revision}))
    await database.close()


async def test_a_database_is_looked_at_without_making_or_changing_it(tmp_path: Path) -> None:
    """Whether it is empty, up to date, older or newer than this version."""
    path = tmp_path / "turnout.db"
    assert (await stands(path)).verdict == "empty"
    assert not path.exists()
    async with open_database(path):
        pass
    found = await stands(path)
    assert (found.kind, found.revision, found.verdict) == ("sqlite", HEAD, "current")
    await revise(path, "0001")
    assert (await stands(path)).verdict == "older"
    await revise(path, "9999")
    assert (await stands(path)).verdict == "newer"


async def test_a_copy_is_whole_while_others_write(tmp_path: Path) -> None:
    """It holds what was committed when it was made, in one file that its owner alone reads."""
    source, target = tmp_path / "turnout.db", tmp_path / "backup.db"
    async with open_database(source) as database:
        store = RecordStore(database)
        for n in range(20):
            await store.begin(RunId(f"run-{n:012x}"), STARTED, NOON)
        copying = asyncio.create_task(asyncio.to_thread(copy_database, source, target))
        for n in range(20, 40):
            await store.begin(RunId(f"run-{n:012x}"), STARTED, NOON)
        assert await copying == target.stat().st_size
        assert len(await store.rows(limit=100)) == 40
    assert target.stat().st_mode & 0o777 == 0o600
    assert names(tmp_path, "*backup*") == ["backup.db"]
    async with open_database(target) as database:
        assert 20 <= len(await RecordStore(database).rows(limit=100)) <= 40


async def test_a_copy_takes_no_place_that_is_taken(tmp_path: Path) -> None:
    """Nor is it made of what is missing, or is no database; nothing half-made is left."""
    source, target = tmp_path / "turnout.db", tmp_path / "backup.db"
    with pytest.raises(StoreError, match="no database"):
        copy_database(source, target)
    async with open_database(source):
        pass
    target.write_text("precious")
    with pytest.raises(StoreError, match="there already"):
        copy_database(source, target)
    assert target.read_text() == "precious"
    with pytest.raises(StoreError, match="There is no folder") as missing:
        copy_database(source, tmp_path / "missing" / "backup.db")
    assert missing.value.mend == f"Make it first: mkdir -p {tmp_path / 'missing'}"
    source.write_bytes(b"no database" * 1000)
    with pytest.raises(StoreError, match="cannot be copied"):
        copy_database(source, tmp_path / "other.db")
    assert names(tmp_path, "*.db*") == ["backup.db", "turnout.db"]


def test_the_line_that_dumps_a_server_holds_no_password() -> None:
    """It is read from where PostgreSQL's programs look for it."""
    line = dump_line("postgresql+psycopg://me:secret@db.example.org/turnout", Path("a.dump"))
    assert line == ("pg_dump --format=custom --file=a.dump postgresql://me@db.example.org/turnout")


def test_a_copy_stands_alone(tmp_path: Path) -> None:
    """No log beside it is needed to read it."""
    source, target = tmp_path / "a.db", tmp_path / "b.db"
    with closing(sqlite3.connect(source)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (x)")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.commit()
        copy_database(source, target)
    assert not list(tmp_path.glob("b.db-*"))
    with closing(sqlite3.connect(target)) as connection:
        assert connection.execute("SELECT x FROM t").fetchall() == [(1,)]
