"""Bringing a database to the newest tables with Alembic."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection

from turnout.errors import StoreError

__all__ = ["upgrade"]


def upgrade(connection: Connection) -> None:
    """Run the migrations that are missing, all in the caller's transaction.

    `StoreError` where the tables were made by a newer Turnout than this one.
    """
    current = MigrationContext.configure(connection).get_current_revision()
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    try:
        ScriptDirectory.from_config(config).get_revisions(current or ())
    except CommandError as error:
        raise StoreError(
            f"The database is of revision {current}, which this version does not know.",
            mend="Install the newest version of turnout, or name another database.",
        ) from error
    command.upgrade(config, "head")
