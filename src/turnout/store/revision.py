"""Which form the tables of a database have, without loading Alembic."""

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

__all__ = ["create_tables", "is_at_head", "is_empty"]

_VERSION = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""As Alembic makes it."""

_LOCK = 7_217_002
"""Of whoever makes tables."""


def is_at_head(connection: Connection) -> bool:
    """Return whether the tables have the newest form."""
    if not inspect(connection).has_table(_VERSION.name):
        return False
    return connection.scalars(select(_VERSION.c.version_num)).all() == [HEAD]


def is_empty(connection: Connection) -> bool:
    """Return whether there is no table at all."""
    return not inspect(connection).get_table_names()


def create_tables(connection: Connection) -> None:
    """Make all tables at once, unless somebody has begun to: what every migration in turn makes."""
    serialise(connection, _LOCK)
    if is_empty(connection):
        metadata.create_all(connection, checkfirst=False)
        _VERSION.create(connection)
        connection.execute(insert(_VERSION), {"version_num": HEAD})
