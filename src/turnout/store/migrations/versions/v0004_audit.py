"""Who changed what, what sandboxes used, and how old runs are found."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create what changes and the use of sandboxes are kept in."""
    op.create_table(
        "audit",
        sa.Column("number", _SERIAL, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("project", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_audit"),
    )
    op.create_index("ix_audit_at", "audit", ["at"])
    op.create_table(
        "machine_use",
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("seq", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("project", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("cpu_ms", sa.BigInteger),
        sa.Column("memory_mib_ms", sa.BigInteger),
        sa.Column("peak_memory_bytes", sa.BigInteger),
        sa.Column("cost", sa.BigInteger),
        sa.PrimaryKeyConstraint("run_id", "seq", name="pk_machine_use"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name="fk_machine_use_run_id"),
    )
    op.create_index("ix_machine_use_at", "machine_use", ["at"])
    op.create_index("ix_runs_ended_at", "runs", ["ended_at"])
