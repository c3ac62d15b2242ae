"""Statements are compiled once, for the database that is used."""

import sqlite3

from sqlalchemy import bindparam, select, update
from sqlalchemy.dialects import postgresql, sqlite
from tests.samples import NOON, STRANGE

from turnout.store.books import BooksStore
from turnout.store.prepared import Prepared
from turnout.store.schema import probes, runs


class OnPostgres:
    """A database of another kind, which says what it was asked to prepare."""

    def __init__(self):
        self.prepared = []

    def prepare(self, build):
        """Compile a statement."""
        self.prepared.append(Prepared(build, postgresql.dialect()))
        return self.prepared[-1]


class Cursor:
    """Keeps what it is to execute."""

    def execute(self, sql, values):
        """Keep it."""
        self.sql, self.values = sql, values


def test_every_statement_of_the_books_is_one_for_postgresql_too():
    """With named parameters there."""
    database = OnPostgres()
    BooksStore(database)
    texts = [prepared._sql for prepared in database.prepared]
    assert len(texts) == 9
    assert sum("ON CONFLICT" in text for text in texts) == 4
    assert all("%(" in text and "?" not in text for text in texts)


def test_values_are_bound_by_name_or_by_place():
    """As the database wants them; what a type changes is changed, and constants are filled in."""

    def build(_):
        return (
            update(runs)
            .where(runs.c.prompt == bindparam("it"))
            .values(started_at=bindparam("at"), outcome="failed")
        )

    cursor, values = Cursor(), {"it": "a\0b", "at": NOON}
    Prepared(build, postgresql.dialect()).run(cursor, values)
    assert cursor.values == {"it": "a\\0000b", "at": NOON, "outcome": "failed"}
    Prepared(build, sqlite.dialect()).run(cursor, values)
    assert cursor.values == ["2026-01-01 12:00:00.000000", "failed", "a\\0000b"]


def test_a_prepared_statement_writes_what_another_reads():
    """Whatever the text holds."""
    dialect = sqlite.dialect()
    insert = Prepared(
        lambda into: into(probes).values(
            {c.name: bindparam(c.name, type_=c.type) for c in probes.columns}
        ),
        dialect,
    )
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE probes (key TEXT PRIMARY KEY, text TEXT)")
    insert.run(connection.cursor(), {"key": "k", "text": STRANGE})
    (stored,) = connection.execute(str(select(probes.c.text).compile(dialect=dialect))).fetchone()
    connection.close()
    assert probes.c.text.type.process_result_value(stored, dialect) == STRANGE
