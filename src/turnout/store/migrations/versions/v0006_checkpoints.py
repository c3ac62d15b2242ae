"""What workspaces of runs held, for machines that share nothing but the database."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Create what checkpoints are kept in."""
    op.create_table(
        "checkpoints",
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("likeness", sa.Text, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("pieces", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "key", name="pk_checkpoints"),
    )
    op.create_table(
        "checkpoint_pieces",
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "epoch", "digest", name="pk_checkpoint_pieces"),
    )
