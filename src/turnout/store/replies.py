"""Idempotency keys: who serves each, and what was answered."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, delete, select, update

from turnout.core.govern.closing import KeptReply
from turnout.core.govern.replies import Standing
from turnout.core.ids import RequestId
from turnout.store.database import Database
from turnout.store.dialects import insert_missing
from turnout.store.schema import replies

__all__ = ["FREE_REPLY", "KEEP_REPLY", "RepliesStore", "reply_row"]

_AT_ONCE = 1_000
"""Answers that are forgotten at a time."""

_KEY = (
    replies.c.scope == bindparam("of_scope"),
    replies.c.idempotency_key == bindparam("of_key"),
)
_OURS = (*_KEY, replies.c.holder == bindparam("of_holder"), replies.c.payload == "")
_GET = select(replies).where(*_KEY)
_TAKE_LAPSED = (
    update(replies)
    .where(*_KEY, replies.c.holder == bindparam("of_holder"), replies.c.until <= bindparam("now"))
    .values(
        digest=bindparam("new_digest"),
        holder=bindparam("new_holder"),
        until=bindparam("new_until"),
        payload="",
    )
)
_RENEW = update(replies).where(*_OURS).values(until=bindparam("new_until"))
KEEP_REPLY = (
    update(replies)
    .where(*_OURS)
    .values(until=bindparam("new_until"), payload=bindparam("new_payload"))
)
"""Puts the answer in the place of a claim, at the end of its request."""
FREE_REPLY = delete(replies).where(*_OURS)
"""Gives a claim up."""
_OLD = (
    select(replies.c.scope, replies.c.idempotency_key)
    .where(replies.c.until < bindparam("before"))
    .limit(_AT_ONCE)
)


class RepliesStore:
    """Claims and answers by scope and idempotency key.

    A claim stands until its `until`, and so does the answer that takes its place.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, wanted: KeptReply, now: datetime) -> Standing:
        """Claim a key for `wanted.holder` until `wanted.until`, unless it is taken."""
        row = {
            "scope": wanted.scope,
            "idempotency_key": wanted.idempotency_key,
            "digest": wanted.digest,
            "holder": wanted.holder,
            "payload": "",
            "until": wanted.until,
        }
        lapsed = {
            "now": now,
            "new_digest": wanted.digest,
            "new_holder": wanted.holder,
            "new_until": wanted.until,
        }

        def work(connection: Connection) -> Standing:
            if insert_missing(connection, replies, row):
                return Standing("claimed", wanted.digest)
            there = connection.execute(_GET, _key(wanted)).first()
            if there is None:
                # Given up just now: whoever asks again has it.
                return Standing("running", wanted.digest)
            if there.until > now:
                return Standing("kept" if there.payload else "running", there.digest, there.payload)
            taken = {**_key(wanted), "of_holder": there.holder, **lapsed}
            if not connection.execute(_TAKE_LAPSED, taken).rowcount:
                return Standing("running", wanted.digest)
            holder = None if there.payload else RequestId(there.holder)
            return Standing("claimed", wanted.digest, lapsed=holder)

        return await self._database.write(work, relaxed=True)

    async def renew(self, claims: Sequence[KeptReply]) -> None:
        """Hold claims until their new `until`; those that lapsed and were taken stay taken."""
        rows = [{**_ours(claim), "new_until": claim.until} for claim in claims]
        if rows:
            await self._database.write(lambda conn: conn.execute(_RENEW, rows), relaxed=True)

    async def free(self, claim: KeptReply) -> None:
        """Give up a claim; an answer that is kept stays."""
        ours = _ours(claim)
        await self._database.write(lambda conn: conn.execute(FREE_REPLY, ours), relaxed=True)

    async def forget(self, before: datetime) -> None:
        """Forget what nobody can be given since that moment, some of it at a time."""
        found = await self._database.read(
            lambda connection: connection.execute(_OLD, {"before": before}).all()
        )
        rows = [{"of_scope": row.scope, "of_key": row.idempotency_key} for row in found]
        if rows:
            old = delete(replies).where(*_KEY, replies.c.until < before)
            await self._database.write(lambda conn: conn.execute(old, rows), relaxed=True)


def reply_row(reply: KeptReply) -> dict[str, Any]:
    """Return what `KEEP_REPLY` and `FREE_REPLY` take."""
    return {**_ours(reply), "new_until": reply.until, "new_payload": reply.payload}


def _key(reply: KeptReply) -> dict[str, Any]:
    return {"of_scope": reply.scope, "of_key": reply.idempotency_key}


def _ours(reply: KeptReply) -> dict[str, Any]:
    return {**_key(reply), "of_holder": reply.holder}
