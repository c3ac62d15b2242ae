"""Which form the tables of a database have, without loading Alembic."""

from typing import Final

from sqlalchemy import (
    Column,
    Connection,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    insert,
    inspect,
    select,
)

from turnout.store.dialects import serialise
from turnout.store.schema import HEAD, metadata

__all__ = ["MAKING_TABLES", "create_tables", "is_at_head", "is_empty", "revision_of"]

_VERSION = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""As Alembic makes it."""

MAKING_TABLES: Final = 7_217_002
"""Lock of whoever makes or changes tables."""


def is_at_head(connection: Connection) -> bool:
    """Return whether the tables have the newest form."""
    return revision_of(connection) == HEAD


def revision_of(connection: Connection) -> str | None:
    """Return the newest migration that was run; None where none was."""
    if not inspect(connection).has_table(_VERSION.name):
        return None
    return connection.scalars(select(_VERSION.c.version_num)).one_or_none()


def is_empty(connection: Connection) -> bool:
    """Return whether there is no table at all."""
    return not inspect(connection).get_table_names()


def create_tables(connection: Connection) -> None:
    """Make all tables at once, unless somebody has begun to: what every migration in turn makes."""
    serialise(connection, MAKING_TABLES)
    if is_empty(connection):
        metadata.create_all(connection, checkfirst=False)
        _VERSION.create(connection)
        connection.execute(insert(_VERSION), {"version_num": HEAD})
