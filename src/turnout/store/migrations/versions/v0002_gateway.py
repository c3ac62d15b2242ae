"""What the gateway keeps."""

import json
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import op

from turnout.store.columns import EscapedText

revision = "0002"
down_revision = "0001"

_SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_AT_ONCE = 500
"""Rows in memory at a time."""
_NAMES = ("model", "deployment")
"""What people have written into a catalog."""


def upgrade() -> None:
    """Create what keys, policies, usage, evidence and conversations are kept in."""
    _keys()
    _policies()
    _usage()
    _evidence()
    _conversations()
    _connections()


def _keys() -> None:
    """Keys, what is charged to them, and replies that can be replayed."""
    op.create_table(
        "keys",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_keys"),
        sa.UniqueConstraint("digest", name="uq_keys_digest"),
    )
    op.create_table(
        "charges",
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("requests", sa.BigInteger, nullable=False),
        sa.Column("spend", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("kind", "scope", "name", name="pk_charges"),
        sqlite_with_rowid=False,
    )
    op.execute(
        "INSERT INTO charges (kind, scope, name, requests, spend) "
        "SELECT 'session', scope, session, requests, spend FROM sessions"
    )
    op.drop_table("reservations")
    op.drop_table("sessions")
    op.create_table(
        "replies",
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("idempotency_key", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("scope", "idempotency_key", name="pk_replies"),
    )
    op.create_index("ix_replies_until", "replies", ["until"])


def _policies() -> None:
    """Policies and their revisions."""
    op.create_table(
        "policies",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("revision", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("restores", sa.Integer),
        sa.Column("payload", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("name", "revision", name="pk_policies"),
    )


def _usage() -> None:
    """Columns to group receipts by, tools that were seen, happenings, webhooks."""
    _widen_receipts()
    op.create_table(
        "tools",
        sa.Column("project", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("tool", sa.Text, nullable=False),
        sa.Column("first_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("requests", sa.BigInteger, nullable=False),
        sa.Column("calls", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("project", "key", "tool", name="pk_tools"),
    )
    op.create_table(
        "tool_hits",
        sa.Column("policy", sa.Text, nullable=False),
        sa.Column("day", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("tool", sa.Text, nullable=False),
        sa.Column("served", sa.BigInteger, nullable=False),
        sa.Column("refused", sa.BigInteger, nullable=False),
        sa.Column("last_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("policy", "day", "key", "tool", name="pk_tool_hits"),
    )
    op.create_table(
        "happenings",
        sa.Column("number", _SERIAL, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("project", sa.Text),
        sa.Column("key", sa.Text),
        sa.Column("payload", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_happenings"),
        sa.UniqueConstraint("id", name="uq_happenings_id"),
    )
    _webhooks()


def _webhooks() -> None:
    """Who is told of happenings, and what has still to be sent."""
    op.create_table(
        "webhooks",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("delivered_at", sa.DateTime(timezone=True)),
        sa.Column("failed_at", sa.DateTime(timezone=True)),
        sa.Column("failure", sa.Text),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("paused_until", sa.DateTime(timezone=True)),
        sa.Column("dropped", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_webhooks"),
    )
    op.create_table(
        "deliveries",
        sa.Column("number", _SERIAL, nullable=False),
        sa.Column("webhook", sa.Text, nullable=False),
        sa.Column("happening", sa.Text, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_deliveries"),
    )
    op.create_index("ix_deliveries_due_at", "deliveries", ["due_at"])
    op.create_index("ix_deliveries_webhook", "deliveries", ["webhook"])


def _widen_receipts() -> None:
    """Add columns to the receipts, and fill them in where receipts are there already."""
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        _remake_receipts()
    else:
        for column in _receipt_columns():
            op.add_column("receipts", sa.Column(column.name, column.type))
    _fill_receipts(connection)
    if connection.dialect.name != "sqlite":
        for column in _receipt_columns():
            if not column.nullable:
                op.alter_column("receipts", column.name, nullable=False)
    op.create_index("ix_receipts_at", "receipts", ["at"])


def _remake_receipts() -> None:
    """Copy the table: SQLite adds no column that may not be null."""
    op.drop_index("ix_receipts_session_key", "receipts")
    op.rename_table("receipts", "old_receipts")
    added = _receipt_columns()
    op.create_table(
        "receipts",
        sa.Column("number", _SERIAL, nullable=False),
        sa.Column("request_id", sa.Text, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("session", sa.Text),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        *added,
        sa.PrimaryKeyConstraint("number", name="pk_receipts"),
        sa.UniqueConstraint("request_id", name="uq_receipts_request_id"),
    )
    op.create_index("ix_receipts_session_key", "receipts", ["session", "key"])
    kept = ("number", "request_id", "at", "session", "key", "payload")
    old = sa.table("old_receipts", *(sa.column(name) for name in kept))
    new = sa.table("receipts", *(sa.column(name) for name in (*kept, *(c.name for c in added))))
    empty = [sa.null() if c.nullable else sa.literal_column("0") for c in added]
    names = [*kept, *(c.name for c in added)]
    op.execute(sa.insert(new).from_select(names, sa.select(*old.c, *empty).order_by(old.c.number)))
    op.drop_table("old_receipts")


def _receipt_columns() -> list[sa.Column[Any]]:
    text, number = sa.Text, sa.BigInteger
    return [
        sa.Column("project", text, nullable=False),
        sa.Column("policy", text),
        sa.Column("status", text, nullable=False),
        sa.Column("model", text),
        sa.Column("deployment", text),
        sa.Column("objective", text),
        sa.Column("task", text),
        sa.Column("call_kind", text),
        sa.Column("shape", text, nullable=False),
        sa.Column("day", text, nullable=False),
        sa.Column("input_tokens", number, nullable=False),
        sa.Column("output_tokens", number, nullable=False),
        sa.Column("cached_tokens", number, nullable=False),
        sa.Column("cost", number),
        sa.Column("latency_ms", number),
        sa.Column("ttft_ms", number),
        sa.Column("fallback", sa.Integer, nullable=False),
        sa.Column("repairs", sa.Integer, nullable=False),
        sa.Column("tools", sa.Integer, nullable=False),
        sa.Column("outside", sa.Integer, nullable=False),
    ]


def _fill_receipts(connection: sa.Connection) -> None:
    columns = _receipt_columns()
    table = sa.table(
        "receipts",
        sa.column("number"),
        sa.column("payload"),
        *(sa.column(c.name, EscapedText if c.name in _NAMES else c.type) for c in columns),
    )
    some = (
        sa.select(table.c.number, table.c.payload)
        .where(table.c.number > sa.bindparam("after"))
        .order_by(table.c.number)
        .limit(_AT_ONCE)
    )
    fill = (
        sa.update(table)
        .where(table.c.number == sa.bindparam("row"))
        .values({c.name: sa.bindparam(f"new_{c.name}") for c in columns})
    )
    last = 0
    while rows := connection.execute(some, {"after": last}).all():
        facts = [(row.number, _facts(json.loads(row.payload))) for row in rows]
        connection.execute(
            fill,
            [{"row": n, **{f"new_{k}": v for k, v in found.items()}} for n, found in facts],
        )
        last = rows[-1].number


def _facts(receipt: dict[str, Any]) -> dict[str, Any]:
    """Return the new columns of a receipt that was written before there were keys."""
    decision, routing = receipt["decision"] or {}, receipt["routing"] or {}
    attempts, usage, cost = receipt["attempts"], receipt["usage"], receipt["cost_micros"]
    tried = attempts[-1]["deployment"] if attempts else None
    at = datetime.fromisoformat(receipt["at"]).astimezone(UTC)
    return {
        "project": "default",
        "policy": "default" if decision else None,
        "status": receipt["status"],
        "model": routing.get("model"),
        "deployment": routing.get("deployment", tried),
        "objective": decision.get("objective"),
        "task": decision.get("task"),
        "call_kind": receipt["call_kind"],
        "shape": "chat",
        "day": at.date().isoformat(),
        "input_tokens": usage["input_tokens"],
        "output_tokens": usage["output_tokens"],
        "cached_tokens": usage["cache_read_input_tokens"],
        "cost": 0 if cost is None and not routing else cost,
        "latency_ms": receipt["latency_ms"] if receipt["status"] == "ok" else None,
        "ttft_ms": receipt["ttft_ms"],
        "fallback": int(routing.get("fallback", False)),
        "repairs": len(receipt.get("repairs", ())),
        "tools": len(receipt["tools_declared"]),
        "outside": len(receipt.get("tools_outside", ())),
    }


def _evidence() -> None:
    """Create what is kept of measurements of deployments."""
    op.create_table(
        "rates",
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_rates"),
    )
    op.create_table(
        "qualities",
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("task", sa.Text, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("solved", sa.Integer, nullable=False),
        sa.Column("tried", sa.Integer, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("subject", "task", name="pk_qualities"),
    )


def _conversations() -> None:
    """Add the thoughts behind tool calls, and stored responses."""
    op.add_column("affinity", sa.Column("reasoning", sa.Text))
    op.create_table(
        "responses",
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("deployment", sa.Text, nullable=False),
        sa.Column("items", sa.LargeBinary, nullable=False),
        sa.Column("made", sa.Integer, nullable=False),
        sa.Column("envelope", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("scope", "id", name="pk_responses"),
    )
    op.create_index("ix_responses_at", "responses", ["at"])


def _connections() -> None:
    """Create what is kept of a turn before the calls that a client is to answer."""
    op.create_table(
        "kept_turns",
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("call_id", sa.Text, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("scope", "call_id", name="pk_kept_turns"),
    )
    op.create_index("ix_kept_turns_at", "kept_turns", ["at"])
