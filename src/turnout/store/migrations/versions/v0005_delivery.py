"""What orders want told, and what becomes of the diffs of their runs."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create what notifications and publications are kept in."""
    op.create_table(
        "notifications",
        sa.Column("number", _SERIAL, nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("project", sa.Text, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("happening", sa.Text, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("again_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("number", name="pk_notifications"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name="fk_notifications_run_id"),
    )
    op.create_index("ix_notifications_due_at", "notifications", ["due_at"])
    op.create_index("ix_notifications_target", "notifications", ["target"])
    op.create_table(
        "publications",
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("project", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("branch", sa.Text, nullable=False),
        sa.Column("pushed", sa.Text, nullable=False),
        sa.Column("link", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("run_id", name="pk_publications"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name="fk_publications_run_id"),
    )
    op.create_index("ix_publications_state_due_at", "publications", ["state", "due_at"])
