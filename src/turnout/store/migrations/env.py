"""How Alembic runs the migrations: on the connection, and in the transaction, of its caller."""

from alembic import context

from turnout.store.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
