"""Bringing a database to the newest tables with Alembic."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection

from turnout.errors import StoreError
from turnout.store.dialects import serialise
from turnout.store.revision import MAKING_TABLES

__all__ = ["known_revisions", "upgrade"]


def upgrade(connection: Connection) -> None:
    """Run the migrations that are missing, all in the caller's transaction.

    `StoreError` where the tables were made by a newer Turnout than this one.
    """
    # Of several that start at once, one does it, and the others find it done.
    serialise(connection, MAKING_TABLES)
    current = MigrationContext.configure(connection).get_current_revision()
    config = _config()
    config.attributes["connection"] = connection
    try:
        ScriptDirectory.from_config(config).get_revisions(current or ())
    except CommandError as error:
        raise StoreError(
            f"The database is of revision {current}, which this version does not know.",
            mend="Install the newest version of turnout, or name another database.",
        ) from error
    command.upgrade(config, "head")


def known_revisions() -> frozenset[str]:
    """Return every migration that this version knows."""
    scripts = ScriptDirectory.from_config(_config())
    return frozenset(script.revision for script in scripts.walk_revisions())


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config
