"""First tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the record, the receipts, the ledger, and what the gateway remembers."""
    op.create_table(
        "runs",
        sa.Column("number", _SERIAL, nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("prompt", sa.Text, nullable=False),
        sa.Column("repository", sa.Text, nullable=False),
        sa.Column("base_commit", sa.Text, nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
        sa.Column("outcome", sa.Text),
        sa.Column("verdict", sa.Text),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("last_seq", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_runs"),
        sa.UniqueConstraint("run_id", name="uq_runs_run_id"),
    )
    op.create_table(
        "events",
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("seq", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "seq", name="pk_events"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name="fk_events_run_id"),
    )
    _create_gateway_tables()


def _create_gateway_tables() -> None:
    op.create_table(
        "receipts",
        sa.Column("number", _SERIAL, nullable=False),
        sa.Column("request_id", sa.Text, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("session", sa.Text),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_receipts"),
        sa.UniqueConstraint("request_id", name="uq_receipts_request_id"),
    )
    op.create_index("ix_receipts_session_key", "receipts", ["session", "key"])
    op.create_table(
        "sessions",
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("session", sa.Text, nullable=False),
        sa.Column("requests", sa.Integer, nullable=False),
        sa.Column("spend", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("scope", "session", name="pk_sessions"),
    )
    op.create_table(
        "reservations",
        sa.Column("request_id", sa.Text, nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("session", sa.Text, nullable=False),
        sa.Column("amount", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("request_id", name="pk_reservations"),
    )
    op.create_table(
        "affinity",
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("call_id", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("deployment", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("scope", "call_id", name="pk_affinity"),
    )
    op.create_table(
        "probes",
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_probes"),
    )
