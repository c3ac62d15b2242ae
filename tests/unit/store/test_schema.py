import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateTable
from tests.samples import ENDED, NOON, STARTED, receipt

import turnout.store
from turnout.core.policies import SessionCaps
from turnout.core.tools import Holder
from turnout.errors import StoreError
from turnout.store.affinity import AffinityStore
from turnout.store.database import Database, open_database
from turnout.store.dialects import sqlite_engine
from turnout.store.probes import ProbesStore
from turnout.store.receipts import ReceiptsStore
from turnout.store.record import RecordStore
from turnout.store.schema import HEAD, metadata
from turnout.store.sessions import SessionLedgerStore

MIGRATIONS = Path(turnout.store.__path__[0]) / "migrations"


def definitions(path):
    """Return every definition that a database file holds."""
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'alembic%'"
        rows = connection.execute(query + " AND name NOT LIKE 'sqlite_%'").fetchall()
    return {name: "".join(sql.split()) for name, sql in rows if sql}


async def test_the_schema_is_what_all_migrations_make(tmp_path):
    """A table changed without a migration would be missing on every old file."""
    async with open_database(tmp_path / "migrated.db") as database:
        found = await database.read(
            lambda connection: compare_metadata(
                MigrationContext.configure(connection, opts={"compare_type": True}), metadata
            )
        )
    assert found == []
    engine = create_engine(f"sqlite:///{tmp_path}/created.db")
    metadata.create_all(engine)
    engine.dispose()
    assert definitions(tmp_path / "migrated.db") == definitions(tmp_path / "created.db")


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
    ledger, affinity = SessionLedgerStore(database), AffinityStore(database)
    await record.begin("run-1", STARTED, NOON)
    await record.take_over("run-1")
    await record.append("run-1", 2, ENDED, NOON)
    await record.entries(await record.find("run"))
    assert await record.rows() == (await record.row("run-1"),)
    await receipts.add(receipt())
    assert await receipts.of_session("s", key="k") == (await receipts.get("req-1"),)
    await ledger.reserve("k", "s", "req-1", 1, SessionCaps())
    await ledger.settle("req-1", 2)
    assert (await ledger.totals("k", "s")).spend == 2
    await affinity.remember("k", ["call"], Holder("m", "p/m"))
    assert await affinity.holder("k", ["call"])
    await ProbesStore(database).put("a", "1")
    assert await ProbesStore(database).get("a") == "1"
