"""Every revision of every policy."""

from collections.abc import Sequence

from sqlalchemy import Connection, Row, bindparam, func, insert, select
from sqlalchemy.exc import IntegrityError

from turnout.core.govern.happenings import Happening, policy_changed
from turnout.core.govern.revisions import PolicyRevision, decode_policy, encode_policy
from turnout.errors import ConflictError, StoreError
from turnout.store.database import Database
from turnout.store.happenings import record
from turnout.store.schema import policies

__all__ = ["PoliciesStore"]

_ADD = insert(policies)
_OF = policies.c.name == bindparam("policy")
_NEWEST_NUMBER = select(func.max(policies.c.revision)).where(_OF)
_HISTORY = select(policies).where(_OF).order_by(policies.c.revision.desc()).limit(bindparam("most"))
_GET = select(policies).where(_OF, policies.c.revision == bindparam("number"))
_COUNT = select(func.count()).select_from(policies)
_LAST = (
    select(policies.c.name, func.max(policies.c.revision).label("revision"))
    .group_by(policies.c.name)
    .subquery()
)
_NEWEST = (
    select(policies)
    .join(_LAST, (policies.c.name == _LAST.c.name) & (policies.c.revision == _LAST.c.revision))
    .order_by(policies.c.name)
)


class PoliciesStore:
    """Revisions, written once and never changed or removed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, revisions: Sequence[PolicyRevision]) -> None:
        """Write revisions and that they happened, durably, all or none.

        `ConflictError` where one does not follow the newest of its policy.
        """

        def work(connection: Connection) -> None:
            for revision in revisions:
                name, number = revision.policy.name, revision.policy.revision
                newest = connection.scalar(_NEWEST_NUMBER, {"policy": name}) or 0
                if number != newest + 1:
                    raise _conflict(name, number)
                try:
                    connection.execute(_ADD, _row(revision))
                except IntegrityError as error:
                    raise _conflict(name, number) from error
            record(connection, map(_happening, revisions))

        await self._database.write(work)

    async def newest(self) -> Sequence[PolicyRevision]:
        """Return the newest revision of every policy, by name."""
        rows = await self._database.read(lambda connection: connection.execute(_NEWEST).all())
        return tuple(_revision(row) for row in rows)

    async def history(self, name: str, *, limit: int = 100) -> Sequence[PolicyRevision]:
        """Return a policy's revisions, newest first; empty where there is none."""
        asked = {"policy": name, "most": limit}
        rows = await self._database.read(
            lambda connection: connection.execute(_HISTORY, asked).all()
        )
        return tuple(_revision(row) for row in rows)

    async def get(self, name: str, number: int) -> PolicyRevision | None:
        """Return one revision; None where there is none."""
        asked = {"policy": name, "number": number}
        row = await self._database.read(lambda connection: connection.execute(_GET, asked).first())
        return None if row is None else _revision(row)

    async def count(self) -> int:
        """Return how many revisions there are of all policies; it grows with every change."""
        return await self._database.read(lambda connection: connection.scalar(_COUNT) or 0)


def _row(revision: PolicyRevision) -> dict[str, object]:
    return {
        "name": revision.policy.name,
        "revision": revision.policy.revision,
        "at": revision.at,
        "author": revision.author,
        "note": revision.note,
        "restores": revision.restores,
        "payload": encode_policy(revision.policy),
    }


def _happening(revision: PolicyRevision) -> Happening:
    policy = revision.policy
    return policy_changed(
        revision.at, policy.name, policy.revision, author=revision.author, note=revision.note
    )


def _revision(row: Row[tuple[object, ...]]) -> PolicyRevision:
    try:
        policy = decode_policy(row.payload)
    except ValueError as error:
        message = f"Revision {row.revision} of the policy {row.name!r} cannot be read: {error}"
        raise StoreError(message) from error
    return PolicyRevision(policy, row.author, row.at, row.note, row.restores)


def _conflict(name: str, number: int) -> ConflictError:
    return ConflictError(
        f"The policy {name!r} was changed meanwhile: revision {number} does not follow its newest.",
        mend="Look at what changed, then try again.",
    )
