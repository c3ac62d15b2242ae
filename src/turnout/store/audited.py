"""Stores whose changes are put on record, for who makes them on the machine itself.

Over HTTP the gateway does so, for every route alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from turnout.core.clock import Clock
from turnout.core.govern.audit import Audited
from turnout.core.govern.evidence import Evaluation
from turnout.core.govern.keys import KeyEntry, KeyRecord
from turnout.core.govern.revisions import PolicyRevision
from turnout.core.govern.webhooks import Webhook
from turnout.store.audit import AuditStore
from turnout.store.database import Database
from turnout.store.evaluations import EvaluationsStore
from turnout.store.keys import KeysStore
from turnout.store.policies import PoliciesStore
from turnout.store.webhooks import WebhooksStore

__all__ = ["AuditedEvaluations", "AuditedKeys", "AuditedPolicies", "AuditedWebhooks", "Hand"]


@dataclass(frozen=True, slots=True)
class Hand:
    """Whoever makes changes."""

    audit: AuditStore
    clock: Clock
    actor: str

    async def did(self, action: str, subject: str, **detail: str) -> None:
        """Put a change on record that was just made."""
        await self.audit.add(Audited(self.clock.now(), self.actor, "", action, subject, detail))


class AuditedEvaluations(EvaluationsStore):
    """Evaluations, each change of which is on record."""

    def __init__(self, database: Database, hand: Hand) -> None:
        super().__init__(database)
        self._hand = hand

    async def apply(self, evaluation: Evaluation) -> bool:
        """Let an evaluation count before all others; False where it does so already."""
        changed = await super().apply(evaluation)
        if changed:
            await self._hand.did("apply_evaluation", evaluation.id)
        return changed

    async def undo(self, evaluation_id: str) -> None:
        """Let an evaluation count no more; `NotFoundError` where it was not applied."""
        await super().undo(evaluation_id)
        await self._hand.did("undo_evaluation", evaluation_id)


class AuditedKeys(KeysStore):
    """Keys, each change of which is on record."""

    def __init__(self, database: Database, hand: Hand) -> None:
        super().__init__(database)
        self._hand = hand

    async def add(self, entry: KeyEntry) -> None:
        """Keep a new key; `ConflictError` where there is or was one of its name."""
        await super().add(entry)
        await self._hand.did("create_key", entry.record.name, **_rights(entry.record))

    async def put(self, record: KeyRecord) -> None:
        """Change what a key may do; `NotFoundError` where there is none of that name."""
        await super().put(record)
        action = "change_key" if record.revoked_at is None else "revoke_key"
        await self._hand.did(action, record.name, **_rights(record))


class AuditedPolicies(PoliciesStore):
    """Policies, each change of which is on record."""

    def __init__(self, database: Database, hand: Hand) -> None:
        super().__init__(database)
        self._hand = hand

    async def add(self, revisions: Sequence[PolicyRevision]) -> None:
        """Write revisions durably, all or none.

        `ConflictError` where one does not follow the newest of its policy.
        """
        await super().add(revisions)
        for revision in revisions:
            policy = revision.policy
            await self._hand.did("put_policy", policy.name, revision=str(policy.revision))


class AuditedWebhooks(WebhooksStore):
    """Webhooks, each change of which is on record."""

    def __init__(self, database: Database, hand: Hand) -> None:
        super().__init__(database)
        self._hand = hand

    async def add(self, webhook: Webhook, at: datetime) -> None:
        """Keep a new webhook."""
        await super().add(webhook, at)
        await self._hand.did("add_webhook", webhook.id, project=webhook.project)

    async def remove(self, webhook_id: str) -> None:
        """Remove a webhook and what waits for it; `NotFoundError` where there is none."""
        await super().remove(webhook_id)
        await self._hand.did("remove_webhook", webhook_id)

    async def again(self, webhook_id: str, at: datetime) -> bool:
        """Send what waits for a webhook though it has failed."""
        done = await super().again(webhook_id, at)
        if done:
            await self._hand.did("retry_webhook", webhook_id)
        return done


def _rights(record: KeyRecord) -> dict[str, str]:
    admin = {"admin": "true"} if record.admin else {}
    return {
        "project": record.project,
        "role": record.role,
        "policies": ", ".join(record.policies),
        **admin,
    }
