import sqlite3
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateTable
from tests.samples import ENDED, NOON, STARTED, receipt

import turnout.store
from turnout.core.govern.closing import Charge, Closing, KeptReply, MadeCalls
from turnout.core.govern.keys import KeyEntry, KeyLimits, KeyRecord
from turnout.core.policies import SessionCaps
from turnout.core.tools import Holder
from turnout.errors import StoreError
from turnout.store.affinity import AffinityStore
from turnout.store.books import BooksStore
from turnout.store.database import Database, open_database
from turnout.store.dialects import sqlite_engine
from turnout.store.keys import KeysStore
from turnout.store.migrate import upgrade
from turnout.store.probes import ProbesStore
from turnout.store.receipts import ReceiptsStore
from turnout.store.record import RecordStore
from turnout.store.replies import RepliesStore
from turnout.store.schema import HEAD, metadata

MIGRATIONS = Path(turnout.store.__path__[0]) / "migrations"


def definitions(path):
    """Return every definition that a database file holds."""
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'alembic%'"
        rows = connection.execute(query + " AND name NOT LIKE 'sqlite_%'").fetchall()
    return {name: "".join(sql.split()) for name, sql in rows if sql}


@asynccontextmanager
async def migrated(path):
    """Open a database whose tables all migrations have made in turn."""
    engine = sqlite_engine(path, durability="normal", busy_timeout=1)
    with engine.begin() as connection:
        upgrade(connection)
    engine.dispose()
    async with open_database(path) as database:
        yield database


async def test_the_schema_is_what_all_migrations_make(tmp_path):
    """A table changed without a migration would be missing on every old file."""
    async with migrated(tmp_path / "migrated.db") as database:
        found = await database.read(
            lambda connection: compare_metadata(
                MigrationContext.configure(connection, opts={"compare_type": True}), metadata
            )
        )
    assert found == []
    async with open_database(tmp_path / "created.db"):
        pass
    assert definitions(tmp_path / "migrated.db") == definitions(tmp_path / "created.db")


async def test_tables_that_were_made_at_once_need_no_migration(tmp_path):
    """Alembic finds them as it leaves them itself."""
    path = tmp_path / "turnout.db"
    async with open_database(path):
        pass
    before = path.read_bytes()
    engine = sqlite_engine(path, durability="normal", busy_timeout=1)
    with engine.begin() as connection:
        upgrade(connection)
        assert not compare_metadata(MigrationContext.configure(connection), metadata)
    engine.dispose()
    assert path.read_bytes() == before


def test_the_head_that_the_code_names_is_the_newest_migration():
    """It is what a start compares with, so as to skip Alembic."""
    assert ScriptDirectory(str(MIGRATIONS)).get_heads() == [HEAD]


async def test_a_file_of_a_newer_turnout_is_refused(tmp_path):
    """Nothing of it is touched."""
    path = tmp_path / "turnout.db"
    async with open_database(path):
        pass
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreError, match=r"9999.*Install the newest version"):
        async with open_database(path):
            pass


def test_every_table_can_be_made_in_postgresql():
    """Keys that count up are BIGSERIAL there, moments keep their zone."""
    dialect = postgresql.dialect()
    made = [str(CreateTable(t).compile(dialect=dialect)) for t in metadata.sorted_tables]
    assert any("number BIGSERIAL" in sql for sql in made)
    assert any("TIMESTAMP WITH TIME ZONE" in sql for sql in made)


async def test_every_statement_of_the_stores_is_one_for_postgresql_too(tmp_path):
    """Upserts aside, each compiles there; raw SQL is none but the start of a transaction."""
    engine = sqlite_engine(tmp_path / "turnout.db", durability="normal", busy_timeout=1)
    database = Database(engine)
    await database.migrate()
    compiled, raw = [], set()

    @event.listens_for(engine, "before_execute")
    def _compile(connection, statement, multiparams, params, options):
        if not isinstance(statement, sqlite.Insert):
            compiled.append(str(statement.compile(dialect=postgresql.dialect())))

    @event.listens_for(engine, "before_cursor_execute")
    def _note(connection, cursor, statement, parameters, context, many):
        if context.compiled is None:
            raw.add(statement)

    await use_every_store(database)
    await database.close()
    assert raw == {"BEGIN", "BEGIN IMMEDIATE"}
    assert len(compiled) > 12


async def use_every_store(database):
    """Call every method of every store once."""
    record, receipts = RecordStore(database), ReceiptsStore(database)
    affinity = AffinityStore(database)
    await record.begin("run-1", STARTED, NOON)
    await record.take_over("run-1")
    await record.append("run-1", 2, ENDED, NOON)
    await record.entries(await record.find("run"))
    assert await record.rows() == (await record.row("run-1"),)
    await receipts.add(receipt())
    assert await receipts.of_session("s", key="k") == (await receipts.get("req-1"),)
    await affinity.remember(MadeCalls("k", ("call",), Holder("m", "p/m")))
    assert await affinity.holder("k", ["call"])
    await ProbesStore(database).put("a", "1")
    assert await ProbesStore(database).get("a") == "1"
    await use_keys_and_books(database)


async def use_keys_and_books(database):
    """Call every method of the stores that govern requests once."""
    keys, replies, books = KeysStore(database), RepliesStore(database), BooksStore(database)
    key = KeyRecord("ci", "web", ("default",), KeyLimits(), NOON, "tk")
    await keys.add(KeyEntry("digest", key))
    await keys.put(key)
    assert await keys.revision() == 2
    assert await keys.all() == (KeyEntry("digest", key),)
    claim = KeptReply("k", "once", "digest", "", NOON, "req-1")
    assert (await replies.claim(claim, NOON)).state == "claimed"
    await replies.renew([claim])
    await replies.free(claim)
    await replies.forget(NOON)
    charge = Charge("session", "k", "s", SessionCaps())
    assert (await books.open([charge], 5)).granted
    await books.close(Closing(receipt("req-9"), (charge,), 5, 2))
    assert (await books.totals("k", "s")).spend == 2
