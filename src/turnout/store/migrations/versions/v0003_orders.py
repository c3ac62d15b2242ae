"""Runs that are ordered from the service, and who works on them."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create what orders and signs of life are kept in."""
    op.create_table(
        "orders",
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("project", sa.Text, nullable=False),
        sa.Column("repository", sa.Text, nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("ordered_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("served_at", sa.DateTime(timezone=True)),
        sa.Column("worker", sa.Text, nullable=False),
        sa.Column("cancel", sa.Integer, nullable=False),
        sa.Column("waits", sa.Text),
        sa.Column("once_key", sa.Text),
        sa.Column("once_digest", sa.Text),
        sa.PrimaryKeyConstraint("run_id", name="pk_orders"),
        sa.UniqueConstraint("project", "once_key", name="uq_orders_project_once_key"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name="fk_orders_run_id"),
    )
    op.create_index("ix_orders_state", "orders", ["state"])
    op.create_table(
        "order_labels",
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "label", name="pk_order_labels"),
        sa.ForeignKeyConstraint(["run_id"], ["orders.run_id"], name="fk_order_labels_run_id"),
    )
    op.create_table(
        "workers",
        sa.Column("worker", sa.Text, nullable=False),
        sa.Column("beat", sa.Float(53), nullable=False),
        sa.PrimaryKeyConstraint("worker", name="pk_workers"),
    )
