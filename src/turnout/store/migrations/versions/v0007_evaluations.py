"""Evaluations that routing goes by, so that one can be taken back."""

import sqlalchemy as sa
from alembic import op

from turnout.core.json import ascii_json
from turnout.store.columns import EscapedText, UtcDateTime

revision = "0007"
down_revision = "0006"

_SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_QUALITIES = sa.table(
    "qualities",
    sa.column("subject", EscapedText),
    sa.column("task", sa.Text),
    sa.column("at", UtcDateTime),
    sa.column("solved", sa.Integer),
    sa.column("tried", sa.Integer),
    sa.column("source", EscapedText),
)


def upgrade() -> None:
    """Create what evaluations are kept in, and make one of each quality that is there."""
    evaluations = op.create_table(
        "evaluations",
        sa.Column("number", _SERIAL, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_evaluations"),
        sa.UniqueConstraint("id", name="uq_evaluations_id"),
    )
    kept = sa.select(_QUALITIES).order_by(_QUALITIES.c.at, _QUALITIES.c.subject)
    rows = op.get_bind().execute(kept).all()
    for number, row in enumerate(rows, start=1):
        # Models saw no tests until then.
        payload = {
            "id": f"earlier-{number}",
            "task": row.task,
            "mode": "hidden",
            "at": row.at.isoformat(),
            "source": row.source,
            "scores": [{"subject": row.subject, "solved": row.solved, "tried": row.tried}],
            "author": "",
            "applied_at": row.at.isoformat(),
        }
        op.execute(evaluations.insert().values(id=f"earlier-{number}", payload=ascii_json(payload)))
