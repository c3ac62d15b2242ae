"""The tables, as the newest migration leaves them.

Payloads are JSON as `core.json.ascii_json` writes it, in plain text columns: it is ASCII
throughout, while `jsonb` would refuse a NUL. The other columns exist because a statement selects
or sorts by them.
"""

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

from turnout.store.columns import EscapedText, PackedText, Serial, UtcDateTime

__all__ = [
    "HEAD",
    "affinity",
    "audit",
    "charges",
    "checkpoint_pieces",
    "checkpoints",
    "deliveries",
    "evaluations",
    "events",
    "happenings",
    "kept_turns",
    "keys",
    "machine_use",
    "metadata",
    "notifications",
    "order_labels",
    "orders",
    "policies",
    "probes",
    "publications",
    "qualities",
    "rates",
    "receipts",
    "replies",
    "responses",
    "runs",
    "tool_hits",
    "tools",
    "webhooks",
    "workers",
]

HEAD = "0007"
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
    Index(None, "ended_at"),
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

orders = Table(
    "orders",
    metadata,
    Column("run_id", EscapedText, ForeignKey("runs.run_id"), primary_key=True),
    Column("project", EscapedText, nullable=False),
    Column("repository", EscapedText, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("payload", Text, nullable=False),
    Column("ordered_at", UtcDateTime, nullable=False),
    Column("state", Text, nullable=False),
    Column("served_at", UtcDateTime),
    Column("worker", EscapedText, nullable=False),
    Column("cancel", Integer, nullable=False),
    Column("waits", Text),
    Column("once_key", EscapedText),
    Column("once_digest", Text),
    UniqueConstraint("project", "once_key"),
    Index(None, "state"),
)
"""Runs of the service, each with a line in `runs` that is there before its record begins."""

order_labels = Table(
    "order_labels",
    metadata,
    Column("run_id", EscapedText, ForeignKey("orders.run_id"), primary_key=True),
    Column("label", EscapedText, primary_key=True),
)

notifications = Table(
    "notifications",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("run_id", EscapedText, ForeignKey("runs.run_id"), nullable=False),
    Column("target", Text, nullable=False),
    Column("project", EscapedText, nullable=False),
    Column("url", EscapedText, nullable=False),
    Column("happening", EscapedText, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("due_at", UtcDateTime, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("again_at", UtcDateTime),
    Index(None, "due_at"),
    Index(None, "target"),
)
"""What the addresses that orders name have still to be told."""

publications = Table(
    "publications",
    metadata,
    Column("run_id", EscapedText, ForeignKey("runs.run_id"), primary_key=True),
    Column("project", EscapedText, nullable=False),
    Column("state", Text, nullable=False),
    Column("due_at", UtcDateTime, nullable=False),
    Column("branch", EscapedText, nullable=False),
    Column("pushed", Text, nullable=False),
    Column("link", EscapedText, nullable=False),
    Column("detail", EscapedText, nullable=False),
    Column("tries", Integer, nullable=False),
    Index(None, "state", "due_at"),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("run_id", EscapedText, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("epoch", Integer, nullable=False),
    Column("likeness", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("pieces", Text, nullable=False),
)
"""Layers of runs that are under way, each as the names of its pieces in order."""

checkpoint_pieces = Table(
    "checkpoint_pieces",
    metadata,
    Column("run_id", EscapedText, primary_key=True),
    Column("epoch", Integer, primary_key=True, autoincrement=False),
    Column("digest", Text, primary_key=True),
    Column("data", LargeBinary, nullable=False),
)

workers = Table(
    "workers",
    metadata,
    Column("worker", EscapedText, primary_key=True),
    Column("beat", Float(53), nullable=False),
)
"""Signs of life, in seconds of the database's own clock."""

machine_use = Table(
    "machine_use",
    metadata,
    Column("run_id", EscapedText, ForeignKey("runs.run_id"), primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("at", UtcDateTime, nullable=False),
    Column("project", EscapedText, nullable=False),
    Column("key", EscapedText, nullable=False),
    Column("cpu_ms", BigInteger),
    Column("memory_mib_ms", BigInteger),
    Column("peak_memory_bytes", BigInteger),
    Column("cost", BigInteger),
    Index(None, "at"),
)
"""What sandboxes used, once more: a line for each such event of a record."""

audit = Table(
    "audit",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    Column("actor", EscapedText, nullable=False),
    Column("project", EscapedText, nullable=False),
    Column("action", Text, nullable=False),
    Column("subject", EscapedText, nullable=False),
    Column("detail", Text, nullable=False),
    Index(None, "at"),
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
    Column("project", EscapedText, nullable=False),
    Column("policy", EscapedText),
    Column("status", Text, nullable=False),
    Column("model", EscapedText),
    Column("deployment", EscapedText),
    Column("objective", Text),
    Column("task", Text),
    Column("call_kind", Text),
    Column("shape", Text, nullable=False),
    Column("day", Text, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False),
    Column("cost", BigInteger),
    Column("latency_ms", BigInteger),
    Column("ttft_ms", BigInteger),
    Column("fallback", Integer, nullable=False),
    Column("repairs", Integer, nullable=False),
    Column("tools", Integer, nullable=False),
    Column("outside", Integer, nullable=False),
    Index(None, "session", "key"),
    Index(None, "at"),
)
"""What follows the payload is for usage, see `store.receipts.receipt_row`."""

tools = Table(
    "tools",
    metadata,
    Column("project", EscapedText, primary_key=True),
    Column("key", EscapedText, primary_key=True),
    Column("tool", EscapedText, primary_key=True),
    Column("first_at", UtcDateTime, nullable=False),
    Column("last_at", UtcDateTime, nullable=False),
    Column("requests", BigInteger, nullable=False),
    Column("calls", BigInteger, nullable=False),
)

tool_hits = Table(
    "tool_hits",
    metadata,
    Column("policy", EscapedText, primary_key=True),
    Column("day", Text, primary_key=True),
    Column("key", EscapedText, primary_key=True),
    Column("tool", EscapedText, primary_key=True),
    Column("served", BigInteger, nullable=False),
    Column("refused", BigInteger, nullable=False),
    Column("last_at", UtcDateTime, nullable=False),
)

happenings = Table(
    "happenings",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("id", EscapedText, nullable=False, unique=True),
    Column("at", UtcDateTime, nullable=False),
    Column("kind", Text, nullable=False),
    Column("project", EscapedText),
    Column("key", EscapedText),
    Column("payload", Text, nullable=False),
)

webhooks = Table(
    "webhooks",
    metadata,
    Column("id", EscapedText, primary_key=True),
    Column("created_at", UtcDateTime, nullable=False),
    Column("payload", Text, nullable=False),
    Column("delivered_at", UtcDateTime),
    Column("failed_at", UtcDateTime),
    Column("failure", EscapedText),
    Column("failures", Integer, nullable=False),
    Column("paused_until", UtcDateTime),
    Column("dropped", BigInteger, nullable=False),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("webhook", EscapedText, nullable=False),
    Column("happening", EscapedText, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("due_at", UtcDateTime, nullable=False),
    Index(None, "due_at"),
    Index(None, "webhook"),
)

keys = Table(
    "keys",
    metadata,
    Column("name", EscapedText, primary_key=True),
    Column("digest", Text, nullable=False, unique=True),
    Column("revision", BigInteger, nullable=False),
    Column("payload", Text, nullable=False),
)

charges = Table(
    "charges",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("scope", EscapedText, primary_key=True),
    Column("name", EscapedText, primary_key=True),
    Column("requests", BigInteger, nullable=False),
    Column("spend", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

replies = Table(
    "replies",
    metadata,
    Column("scope", EscapedText, primary_key=True),
    Column("idempotency_key", EscapedText, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("holder", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("until", UtcDateTime, nullable=False),
    Index(None, "until"),
)

affinity = Table(
    "affinity",
    metadata,
    Column("scope", EscapedText, primary_key=True),
    Column("call_id", EscapedText, primary_key=True),
    Column("model", EscapedText, nullable=False),
    Column("deployment", EscapedText, nullable=False),
    Column("reasoning", EscapedText),
)

responses = Table(
    "responses",
    metadata,
    Column("scope", EscapedText, primary_key=True),
    Column("id", EscapedText, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    Column("model", EscapedText, nullable=False),
    Column("deployment", EscapedText, nullable=False),
    Column("items", PackedText, nullable=False),
    Column("made", Integer, nullable=False),
    Column("envelope", PackedText, nullable=False),
    Index(None, "at"),
)

probes = Table(
    "probes",
    metadata,
    Column("key", EscapedText, primary_key=True),
    Column("text", EscapedText, nullable=False),
)

policies = Table(
    "policies",
    metadata,
    Column("name", EscapedText, primary_key=True),
    Column("revision", Integer, primary_key=True, autoincrement=False),
    Column("at", UtcDateTime, nullable=False),
    Column("author", EscapedText, nullable=False),
    Column("note", EscapedText, nullable=False),
    Column("restores", Integer),
    Column("payload", Text, nullable=False),
)

rates = Table(
    "rates",
    metadata,
    Column("key", EscapedText, primary_key=True),
    Column("payload", Text, nullable=False),
)

qualities = Table(
    "qualities",
    metadata,
    Column("subject", EscapedText, primary_key=True),
    Column("task", Text, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    Column("solved", Integer, nullable=False),
    Column("tried", Integer, nullable=False),
    Column("source", EscapedText, nullable=False),
)

evaluations = Table(
    "evaluations",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("payload", Text, nullable=False),
)

kept_turns = Table(
    "kept_turns",
    metadata,
    Column("scope", EscapedText, primary_key=True),
    Column("call_id", EscapedText, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    Column("text", EscapedText, nullable=False),
    Index(None, "at"),
)
