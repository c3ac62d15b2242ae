"""The tables, as the newest migration leaves them.

Payloads are JSON as `core.json.ascii_json` writes it, in plain text columns: it is ASCII
throughout, while `jsonb` would refuse a NUL. The other columns exist because a statement selects
or sorts by them.
"""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
)

from turnout.store.columns import EscapedText, Serial, UtcDateTime

__all__ = [
    "HEAD",
    "affinity",
    "events",
    "metadata",
    "probes",
    "receipts",
    "reservations",
    "runs",
    "sessions",
]

HEAD = "0001"
"""The newest migration."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

runs = Table(
    "runs",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("run_id", EscapedText, nullable=False, unique=True),
    Column("prompt", EscapedText, nullable=False),
    Column("repository", EscapedText, nullable=False),
    Column("base_commit", EscapedText, nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("ended_at", UtcDateTime),
    Column("outcome", Text),
    Column("verdict", Text),
    Column("epoch", Integer, nullable=False),
    Column("last_seq", Integer, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("run_id", EscapedText, ForeignKey("runs.run_id"), primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("at", UtcDateTime, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("payload", Text, nullable=False),
)

receipts = Table(
    "receipts",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("request_id", EscapedText, nullable=False, unique=True),
    Column("at", UtcDateTime, nullable=False),
    Column("session", EscapedText),
    Column("key", EscapedText, nullable=False),
    Column("payload", Text, nullable=False),
    Index(None, "session", "key"),
)

sessions = Table(
    "sessions",
    metadata,
    Column("scope", EscapedText, primary_key=True),
    Column("session", EscapedText, primary_key=True),
    Column("requests", Integer, nullable=False),
    Column("spend", BigInteger, nullable=False),
)

reservations = Table(
    "reservations",
    metadata,
    Column("request_id", EscapedText, primary_key=True),
    Column("scope", EscapedText, nullable=False),
    Column("session", EscapedText, nullable=False),
    Column("amount", BigInteger, nullable=False),
)

affinity = Table(
    "affinity",
    metadata,
    Column("scope", EscapedText, primary_key=True),
    Column("call_id", EscapedText, primary_key=True),
    Column("model", EscapedText, nullable=False),
    Column("deployment", EscapedText, nullable=False),
)

probes = Table(
    "probes",
    metadata,
    Column("key", EscapedText, primary_key=True),
    Column("text", EscapedText, nullable=False),
)
